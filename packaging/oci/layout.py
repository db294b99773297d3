#!/usr/bin/env python3
"""layout.py ROOT.tar DOCKERFILE VERSION OUTPUT: an OCI archive (image-spec 1.0) of one layer, with what the
Dockerfile says of how it runs, so that both ways to build give the same image."""

import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import shlex
import shutil
import sys
import tarfile
import tempfile

MEDIA = "application/vnd.oci.image"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def run_config(dockerfile: str) -> dict:
    """The part of `config` that ENV, USER, WORKDIR, VOLUME, LABEL and ENTRYPOINT of a Dockerfile make."""
    config = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Labels": {}}
    for line in dockerfile.replace("\\\n", " ").splitlines():
        instruction, _, rest = line.partition(" ")
        if instruction == "ENV":
            config["Env"] += shlex.split(rest)
        elif instruction == "USER":
            config["User"] = rest
        elif instruction == "WORKDIR":
            config["WorkingDir"] = rest
        elif instruction == "VOLUME":
            config["Volumes"] = {rest: {}}
        elif instruction == "LABEL":
            name, _, value = rest.partition("=")
            config["Labels"][name] = value
        elif instruction == "ENTRYPOINT":
            config["Entrypoint"] = json.loads(rest)
    return config


class Archive:
    """The tar file that an image layout is put into; a blob is named by its digest."""

    def __init__(self, path):
        self.tar = tarfile.open(path, "w")

    def add(self, name, size, stream):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime = size, EPOCH
        self.tar.addfile(entry, stream)

    def add_json(self, name, value) -> bytes:
        data = json.dumps(value).encode()
        self.add(name or f"blobs/sha256/{hashlib.sha256(data).hexdigest()}", len(data), io.BytesIO(data))
        return data

    def add_blob(self, media_type, value) -> dict:
        data = self.add_json(None, value)
        return descriptor(media_type, hashlib.sha256(data).hexdigest(), len(data))


def descriptor(media_type, digest, size):
    return {"mediaType": f"{MEDIA}.{media_type}", "digest": f"sha256:{digest}", "size": size}


def digest_of(path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main() -> int:
    root, dockerfile, version, output = sys.argv[1:]
    archive = Archive(output)
    with tempfile.TemporaryDirectory() as scratch:
        layer = pathlib.Path(scratch) / "layer.tar.gz"
        with open(root, "rb") as plain, open(layer, "wb") as raw:
            with gzip.GzipFile("", "wb", 6, raw, 0) as zipped:
                shutil.copyfileobj(plain, zipped, 1 << 20)
        size, digest = layer.stat().st_size, digest_of(layer)
        with open(layer, "rb") as stream:
            archive.add(f"blobs/sha256/{digest}", size, stream)
    created = datetime.datetime.fromtimestamp(EPOCH, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = run_config(pathlib.Path(dockerfile).read_text())
    config["Labels"]["org.opencontainers.image.version"] = version
    image = {
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest_of(root)}"]},
        "history": [{"created": created, "created_by": "packaging/oci/build.sh"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": archive.add_blob("config.v1+json", image),
        "layers": [descriptor("layer.v1.tar+gzip", digest, size)],
    }
    reference = archive.add_blob("manifest.v1+json", manifest)
    reference["annotations"] = {"org.opencontainers.image.ref.name": version}
    archive.add_json("index.json", {"schemaVersion": 2, "manifests": [reference]})
    archive.add_json("oci-layout", {"imageLayoutVersion": "1.0.0"})
    archive.tar.close()
    print(f"{output} ({os.path.getsize(output):,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
