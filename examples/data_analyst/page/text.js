// Text as nodes of the page, never as HTML: a little Markdown, and Python in colours.

// Paragraphs and lists, with **strong** and `code` in them: what a model writes most.
export function markdown(text) {
  return text.split(/\n{2,}/).flatMap(part => {
    const blocks = [];
    for (const line of part.split('\n')) {
      const item = line.match(/^\s*(?:[-*•]|\d+\.)\s+(.*)/);
      const tag = item ? 'UL' : 'P';
      if (blocks.at(-1)?.tagName !== tag) blocks.push(document.createElement(tag));
      else if (!item) blocks.at(-1).append('\n');
      (item ? blocks.at(-1).appendChild(document.createElement('li')) : blocks.at(-1)).append(...inline(line.replace(/^#+ /, ''), item));
    }
    return blocks;
  });
}

function inline(line, item) {
  return (item ? item[1] : line).split(/(\*\*.+?\*\*|`.+?`)/).map(part => {
    if (part.startsWith('**') && part.length > 4) return element('strong', part.slice(2, -2));
    if (part.startsWith('`') && part.length > 2) return element('code', part.slice(1, -1));
    return part;
  });
}

const PYTHON =
  /(?<comment>#.*)|(?<string>(?:\b[fr])?(?:'[^'\n]*'|"[^"\n]*"))|\b(?<keyword>and|as|async|await|break|class|continue|def|elif|else|except|finally|for|from|if|import|in|is|lambda|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b/g;

export function highlighted(code) {
  const nodes = [];
  let done = 0;
  for (const found of code.matchAll(PYTHON)) {
    const kind = Object.keys(found.groups).find(name => found.groups[name] !== undefined);
    nodes.push(code.slice(done, found.index), element('span', found[0], kind));
    done = found.index + found[0].length;
  }
  return [...nodes, code.slice(done)];
}

function element(tag, text, name = '') {
  return Object.assign(document.createElement(tag), { textContent: text, className: name });
}
