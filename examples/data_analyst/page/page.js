// What the server tells is shown as it comes. Everything from a file, a model or Python is put in as text.

import { highlighted, markdown } from './text.js';

const at = id => document.getElementById(id);
const conversation = at('conversation');
let id = null; // of the analysis
let words = null; // the paragraph that the model is speaking
let cell = null; // the code that runs

// ---- sending

at('file').onchange = () => (at('chosen').textContent = at('file').files[0]?.name ?? 'Choose a CSV file');
at('drop').ondragover = event => (event.preventDefault(), at('drop').classList.add('over'));
at('drop').ondragleave = () => at('drop').classList.remove('over');
at('drop').ondrop = event => {
  event.preventDefault();
  at('drop').classList.remove('over');
  at('file').files = event.dataTransfer.files;
  at('file').onchange();
};
at('upload').onsubmit = event => (event.preventDefault(), analyse(at('file').files[0]));
at('sample').onclick = async () => analyse(new File([await (await fetch('page/sample.csv')).blob()], 'cafes.csv'));

async function analyse(file) {
  status('working', `Sending ${file.name}`);
  const query = new URLSearchParams({ name: file.name, question: at('question').value });
  const answer = await send(`analyses?${query}`, { body: file, headers: { 'Content-Type': 'text/csv' } });
  if (!answer) return;
  ({ id } = await answer.json());
  at('upload').hidden = true;
  at('about').textContent = file.name;
  const events = new EventSource(`analyses/${id}/events`); // connects again by itself, and goes on where it was
  events.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    show[event.kind](event);
    if (event.kind === 'ended') events.close();
  };
}

at('ask').onsubmit = async event => {
  event.preventDefault();
  const query = new URLSearchParams({ question: at('next').value });
  if (await send(`analyses/${id}/questions?${query}`)) at('next').value = '';
};

async function send(where, what = {}) {
  const answer = await fetch(where, { method: 'POST', ...what }).catch(error => error);
  if (answer.ok) return answer;
  show.failed({ text: answer instanceof Error ? answer.message : await answer.text() });
}

// ---- the page stays at its end while it grows, until the reader scrolls up

let following = true;
let before = 0;
window.onscroll = () => {
  if (window.scrollY < before) following = false;
  else if (window.innerHeight + window.scrollY > document.body.scrollHeight - 60) following = true;
  before = window.scrollY;
};
new ResizeObserver(() => following && window.scrollTo(0, document.body.scrollHeight)).observe(conversation);

// ---- showing, one function an event (analysis.py)

const show = {
  question({ text }) {
    add(conversation, 'div', 'question', text);
    words = cell = null;
    status('working', 'Working');
    at('more').hidden = true;
  },
  words({ text }) {
    words ??= Object.assign(add(conversation, 'div', 'words'), { said: '' });
    words.said += text;
    words.replaceChildren(...markdown(words.said));
  },
  code({ code }) {
    words = null;
    cell = add(conversation, 'div', 'cell');
    add(cell, 'pre', 'code').append(...highlighted(code));
  },
  progress({ text }) {
    if (!cell) return;
    (cell.querySelector('.progress') ?? add(cell, 'pre', 'progress')).textContent = text;
  },
  result({ blocks, failed }) {
    cell.querySelector('.progress')?.remove();
    let about = ''; // a line of text comes before each image and says what it shows
    for (const { text, image } of blocks) {
      if (image) {
        Object.assign(add(cell, 'img', 'result'), { src: image, alt: about });
        continue;
      }
      const lines = text.trimEnd().split('\n');
      about = lines.at(-1).startsWith('[image') ? lines.pop().slice(1, -1) : '';
      if (lines.length) add(cell, 'pre', failed ? 'result failed' : 'result', lines.join('\n'));
    }
    cell = null;
  },
  answered() {
    words = null;
    at('notebook').href = `analyses/${id}/notebook.ipynb`;
    at('script').href = `analyses/${id}/script.py`;
    at('more').hidden = at('exports').hidden = false;
    status('ready', 'Ready');
  },
  failed({ text }) {
    add(conversation, 'div', 'trouble', text);
    status('failed', 'Something went wrong');
  },
  ended() {
    at('ask').hidden = true;
    if (at('status').dataset.state !== 'failed') status('ready', 'Ended');
  },
};

function status(state, text) {
  at('status').dataset.state = state;
  at('status').textContent = text;
}

function add(parent, tag, name, text = '') {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  parent.append(element);
  return element;
}
