#!/usr/bin/env python3
"""Serves the witness on loopback, with a socket for the owner's side. Once both are there it prints its address.

    serve.py PORT OWNER_SOCKET [--did web] [--model] [--tls FILE] [--still MILLISECONDS]

PORT 0 is any free port.
"""

import argparse
import contextlib
import json
import os
import socketserver
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from witness.certificate import context
from witness.house import House
from witness.keys import Signer
from witness.owner import command
from witness.wire import Gateway, Server


class Owner(socketserver.StreamRequestHandler):
    """One command a line in, one answer a line out."""

    def handle(self) -> None:
        for line in self.rfile:
            try:
                said = command(self.server.house, json.loads(line))  # type: ignore[attr-defined]
            except Exception as error:  # noqa: BLE001 one command that fails is not the end of the owner's side
                said = {"error": f"{type(error).__name__}: {error}", "fault": True}
            self.wfile.write(json.dumps(said).encode() + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("owner", help="path of the owner's socket")
    parser.add_argument("--did", choices=("key", "web"), default="key", help="the principal's DID")
    parser.add_argument("--model", action="store_true", help="with a model of embeddings, which counts letters")
    parser.add_argument("--tls", metavar="FILE", help="serve TLS as localhost; who shall trust it finds the authority there")
    parser.add_argument("--still", type=int, metavar="MILLISECONDS", help="its clock stands, and goes on by the command `wait` alone")
    given = parser.parse_args()

    # Who it is follows from its port.
    server = Server(("127.0.0.1", given.port), Gateway(House("http://127.0.0.1:0", Signer.new())))
    port = server.server_address[1]
    host = "localhost" if given.tls or given.did == "web" else "127.0.0.1"
    did = f"did:web:{host}%3A{port}" if given.did == "web" else None
    origin = f"{'https' if given.tls else 'http'}://{host}:{port}"
    house = House(origin, Signer.new(did), has_model=given.model, stands_at=given.still)
    server.gateway = Gateway(house)

    with contextlib.suppress(FileNotFoundError):
        os.unlink(given.owner)
    owner = socketserver.ThreadingUnixStreamServer(given.owner, Owner)
    os.chmod(given.owner, 0o600)
    owner.daemon_threads = True
    owner.house = house  # type: ignore[attr-defined]
    threading.Thread(target=owner.serve_forever, daemon=True).start()

    tls = context(given.tls) if given.tls else None
    if tls:
        # The handshake is the work of the thread that answers.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(house.origin, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
