"""A schema registry that speaks the REST calls a consumer makes, on loopback, with the schemas it was given."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class Registry:
    """Schemas by number and by subject and version.

    A schema is what the registry answers: ``schemaType``, ``schema``, perhaps ``references``; of Protobuf also
    ``serialized``, which is given instead of ``schema`` when that format is asked for.
    """

    schemas: dict[int, dict] = field(default_factory=dict)
    versions: dict[tuple[str, int], int] = field(default_factory=dict)
    user_info: str | None = None
    failures: int = 0
    """How many requests are answered by 503 before one succeeds."""
    asked: list[str] = field(default_factory=list)

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict]:
        self.asked.append(path)
        if self.failures:
            self.failures -= 1
            return 503, {"error_code": 50003, "message": "not now"}
        if self.user_info is not None and authorization != f"Basic {self.user_info}":
            return 401, {"error_code": 40101, "message": "not allowed"}
        parts, query = urlsplit(path), parse_qs(urlsplit(path).query)
        names = parts.path.strip("/").split("/")
        if names[:2] == ["schemas", "ids"]:
            return self._schema(int(names[2]), query)
        if names[0] == "subjects" and names[2] == "versions":
            number = self.versions[names[1], int(names[3])]
            status, found = self._schema(number, query)
            return status, {**found, "subject": names[1], "version": int(names[3]), "id": number}
        return 404, {"error_code": 404, "message": "no such path"}

    def _schema(self, number: int, query: dict) -> tuple[int, dict]:
        if number not in self.schemas:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        found = dict(self.schemas[number])
        serialized = found.pop("serialized", None)
        if query.get("format") == ["serialized"]:
            found["schema"] = serialized
        return 200, found

    def _handler(self):
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                status, found = registry.answer(self.path, self.headers.get("Authorization"))
                body = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
