#!/usr/bin/env python3
"""Serves the witness on loopback, with a socket for the owner's side.

    serve.py PORT OWNER_SOCKET [--did web] [--cert FILE --key FILE]
"""

import argparse
import contextlib
import json
import os
import socketserver
import ssl
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from witness.house import House
from witness.keys import Signer
from witness.owner import command
from witness.wire import Gateway, Server


class Owner(socketserver.StreamRequestHandler):
    """One command a line in, one answer a line out."""

    def handle(self) -> None:
        for line in self.rfile:
            said = command(self.server.house, json.loads(line))  # type: ignore[attr-defined]
            self.wfile.write(json.dumps(said).encode() + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("owner", help="path of the owner's socket")
    parser.add_argument("--did", choices=("key", "web"), default="key", help="the principal's DID")
    parser.add_argument("--cert", help="a certificate for localhost (PEM), for TLS")
    parser.add_argument("--key", help="its key (PEM)")
    given = parser.parse_args()

    host = "localhost" if given.cert or given.did == "web" else "127.0.0.1"
    origin = f"{'https' if given.cert else 'http'}://{host}:{given.port}"
    did = f"did:web:{origin.partition('//')[2].replace(':', '%3A')}" if given.did == "web" else None
    house = House(origin, Signer.new(did))
    server = Server(("127.0.0.1", given.port), Gateway(house))
    if given.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(given.cert, given.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)

    with contextlib.suppress(FileNotFoundError):
        os.unlink(given.owner)
    owner = socketserver.ThreadingUnixStreamServer(given.owner, Owner)
    os.chmod(given.owner, 0o600)
    owner.daemon_threads = True
    owner.house = house  # type: ignore[attr-defined]
    threading.Thread(target=owner.serve_forever, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
