"""Templates, volumes, and what the server says of itself."""

from aiohttp import web
from go_json import Failure, answer, by_key, struct


def template(name, size_gb, memory_mb, label, category, base, tools, description=None):
    shown = {
        "name": name,
        "rootfs_path": f"/var/lib/pandastack/templates/{name}/rootfs.ext4",
        "size_bytes": size_gb << 30,
        "cpu": 8,
        "memory_mb": memory_mb,
        "is_global": True,
        "label": label,
    }
    if description:
        shown["description"] = description
    return shown | {"category": category, "base": base, "tools": tools}


TEMPLATES = [
    template(
        "agent", 6, 2048, "Coding Agent", "agents", "ubuntu + node 24", ["claude", "codex", "ripgrep", "git"]
    ),
    template("base", 4, 1024, "Base", "base", "ubuntu", ["curl", "git"]),
    template(
        "code-interpreter",
        12,
        2048,
        "Code Interpreter",
        "data",
        "python:3.13 + node 24",
        ["pandas", "numpy", "jupyter", "playwright", "openai-agents"],
        "Python + Node data/code execution environment with scientific stack.",
    ),
    template("postgres-16", 8, 1024, "PostgreSQL 16", "databases", "postgres:16", ["psql"]),
]

FOREIGN = "someone-elses"  # a template of another workspace


class Catalogue:
    def __init__(self, fake):
        self.fake = fake
        self.volumes = {}

    def routes(self, router):
        router.add_get("/v1/templates", self.list)
        router.add_get("/v1/templates/{name}", self.get)
        router.add_post("/v1/volumes", self.add_volume)
        router.add_get("/v1/volumes", self.list_volumes)
        router.add_delete("/v1/volumes/{name}", self.remove_volume)
        router.add_get("/v1/me", self.me)
        router.add_get("/healthz", self.health)
        router.add_get("/readyz", self.ready)
        router.add_get("/version", self.version)

    def template(self, name):
        for each in TEMPLATES:
            if each["name"] == name:
                return each
        if name == FOREIGN:
            raise Failure(403, "template not accessible")
        if self.fake.defects.get("no_postgres") or self.fake.defects.get("june"):
            raise Failure(500, f'template "{name}" is not on this host and could not be pulled: not found')
        known = "run `pandastack template list` to see available templates"
        raise Failure(400, f'unknown template "{name}": not in the template catalog ({known})')

    async def list(self, request):
        return answer(TEMPLATES)

    async def get(self, request):
        for each in TEMPLATES:
            if each["name"] == request.match_info["name"]:
                return answer(each)
        raise Failure(404, "template not found")

    async def add_volume(self, request):
        asked = await struct(request, "volumeReq", {"name": str, "size_mb": int})
        name, size = asked.get("name", ""), asked.get("size_mb", 256)
        if not name:
            raise Failure(400, "name required")
        if name in self.volumes:
            raise Failure(409, "volume already exists")
        self.volumes[name] = {"name": name, "size_mb": size, "size_bytes": size << 20}
        return answer(self.volumes[name], 201)

    async def list_volumes(self, request):
        return answer(list(self.volumes.values()))

    async def remove_volume(self, request):
        self.volumes.pop(request.match_info["name"], None)
        return web.Response(status=204)

    async def me(self, request):
        workspace = self.fake.workspace
        return answer(
            by_key(
                {
                    "user_id": "stub-user",
                    "email": "dev@localhost",
                    "current_org": workspace,
                    "orgs": [{"id": workspace, "name": workspace, "role": "owner"}],
                    "auth_method": "api_token",
                }
            )
        )

    async def health(self, request):
        if self.fake.defects.get("no_postgres") and not self.fake.defects.get("june"):
            return answer({"status": "unhealthy"}, 503)
        return answer({"status": "ok"})

    async def ready(self, request):
        if self.fake.defects.get("no_postgres"):
            return answer({"degraded": ["database", "compute"], "status": "degraded"}, 503)
        return answer({"status": "ok"})

    async def version(self, request):
        return answer(
            {
                "service": "pandastack-api",
                "semver": "0.15.44",
                "commit": "fake",
                "build_time": "2026-08-19T00:00:00Z",
                "go": "go1.24",
                "os": "linux",
                "arch": "amd64",
            }
        )
