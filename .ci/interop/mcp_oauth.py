"""The real MCP client (PyPI `mcp`) gets its tokens by OAuth from the real program: by a name that the owner added, and by its own metadata document. `$OAP_MEMORY` is the program."""

import asyncio
import contextlib
import http.server
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

PROGRAM = os.environ["OAP_MEMORY"]
MODES = ("auto", "legacy", "2026-07-28")
CALLBACK = "http://127.0.0.1:47011/callback"


class Kept:
    """What a client keeps: its tokens, and who it is."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Owner:
    """The person at the browser, and at the command line."""

    def __init__(self, home: str) -> None:
        self.home, self.back, self.asked = home, "", 0

    def run(self, *arguments: str) -> dict:
        """A command of the owner's."""
        done = subprocess.run([PROGRAM, "--home", self.home, "--json", *arguments], check=True, capture_output=True)
        return json.loads(done.stdout)

    async def browser(self, url: str) -> None:
        """Opens the page, reads the code that it shows, says yes, and is sent back. Like a browser it keeps the page's cookie."""
        self.asked += 1
        async with httpx2.AsyncClient() as http:
            begun = await http.get(url, headers={"sec-fetch-dest": "document"})
            assert begun.status_code == 303, begun.text
            page = str(begun.request.url.join(begun.headers["location"]))
            async with httpx2.AsyncClient() as stranger:
                assert (await stranger.get(page)).status_code == 404, "another browser is shown the page"
            shown = (await http.get(page)).text
            code = re.search(r"consent approve ([0-9A-Z]{4}-[0-9A-Z]{4}) ", shown)
            assert code, shown
            await asyncio.to_thread(self.run, "agent", "consent", "approve", code[1], "--as", "scout", "--yes")
            back = await http.get(page)
            assert back.status_code == 303, back.text
            self.back = back.headers["location"]

    async def callback(self) -> AuthorizationCodeResult:
        """What the browser brings back."""
        assert self.back.startswith(CALLBACK), self.back
        answer = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        return AuthorizationCodeResult(**answer)


@contextlib.contextmanager
def served(home: str, port: int, *flags: str):
    """A running gateway."""
    command = [PROGRAM, "--home", home, *flags, "serve", "--plain-http", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert any("serving" in line for line in server.stderr), "it does not serve"
            yield
        finally:
            server.terminate()
            server.stderr.read()


@contextlib.contextmanager
def website(folder: Path):
    """The client's own site over https, with its metadata document; its address, and its authority."""
    key, certificate = folder / "site.key", folder / "site.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            document = {"client_id": url, "client_name": "Interop", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    url = f"https://localhost:{server.server_address[1]}/client.json"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield url, str(certificate)
    finally:
        server.shutdown()


async def drive(owner: Owner, server: str, kept: Kept, document: str | None, mode: str) -> None:
    """A client that knows nothing but the server's address learns and recalls."""
    provider = OAuthClientProvider(
        server_url=server,
        client_metadata=OAuthClientMetadata(redirect_uris=[CALLBACK], client_name="Interop"),
        storage=kept,
        redirect_handler=owner.browser,
        callback_handler=owner.callback,
        client_metadata_url=document,
    )
    async with httpx2.AsyncClient(auth=provider) as http:
        async with Client(streamable_http_client(server, http_client=http), mode=mode) as client:
            learned = await client.call_tool("memory_learn", {"content": f"{mode} tea", "topic": "tea"})
            assert not learned.is_error, learned
            recalled = await client.call_tool("memory_recall", {"query": "tea"})
            assert recalled.structured_content["matched"] >= 1, recalled
            # Its time over, the client renews by itself, and nobody is asked.
            before, asked = kept.tokens, owner.asked
            provider.context.token_expiry_time = 1.0
            status = await client.call_tool("memory_status", {})
            assert kept.tokens.refresh_token != before.refresh_token and owner.asked == asked, kept.tokens
            assert status.structured_content["agent"] == "scout", status
    assert kept.tokens and kept.tokens.scope == "memory.read memory.write" and kept.tokens.refresh_token, kept.tokens


async def main() -> None:
    """Each way to be known, in each mode of the protocol; and the end of the agent."""
    with tempfile.TemporaryDirectory() as folder, website(Path(folder)) as (document, authority):
        home = str(Path(folder) / "home")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        owner, server = Owner(home), f"http://127.0.0.1:{port}/mcp"
        owner.run("init", "--did", "did:key", "--key-file", str(Path(folder) / "key"))
        owner.run("agent", "add", "scout")
        owner.run("agent", "client", "add", "interop", "--redirect", CALLBACK)
        with served(home, port, "--allow-local-dids", "--trust-ca", authority):
            for mode in MODES:
                named = Kept(OAuthClientInformationFull(client_id="interop", redirect_uris=[CALLBACK]))
                await asyncio.wait_for(drive(owner, server, named, None, mode), timeout=60)
                published = Kept(None)
                await asyncio.wait_for(drive(owner, server, published, document, mode), timeout=60)
                assert published.client and published.client.client_id == document, published.client
            assert owner.asked == 2 * len(MODES), owner.asked
            owner.run("agent", "remove", "scout")
            assert owner.run("agent", "consent", "list")["given"] == []
        owner.run("audit", "verify")
    print(f"mcp {', '.join(MODES)} with OAuth: by name and by metadata document, with the owner's yes")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
