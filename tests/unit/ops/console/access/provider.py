"""An OpenID provider on this machine: it logs everybody in as the person that the test says."""

import base64
import hashlib
import threading
import time
from urllib.parse import urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

from tests.waiting import until

CLIENT, SECRET = "kappa", "hush"


class Provider:
    """Issues codes and signed tokens; `claims` are of who logs in, `forged` signs with a key that isn't known."""

    def __init__(self):
        self.key, self.other = (RSAKey.generate_key(2048, {"kid": "k1"}) for _ in range(2))
        self.claims = {"sub": "1", "preferred_username": "ada", "groups": ["sre"]}
        self.forged = False
        self.codes = {}
        routes = [
            Route("/.well-known/openid-configuration", self._metadata),
            Route("/authorize", self._authorize),
            Route("/token", self._token, methods=["POST"]),
            Route("/jwks", lambda _: JSONResponse({"keys": [self.key.as_dict(private=False)]})),
        ]
        self._server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=0, log_level="error"))

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started, 30, "the provider", pause=0.05)
        (port,) = {socket.getsockname()[1] for server in self._server.servers for socket in server.sockets}
        self.issuer = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(30)

    def _metadata(self, _):
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    def _authorize(self, request):
        asked = dict(request.query_params)
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    async def _token(self, request):
        form = await request.form()
        asked = self.codes.pop(form["code"], None)
        client = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if asked is None or client != f"{CLIENT}:{SECRET}" or challenge != asked["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        said = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"], **self.claims}
        token = jwt.encode({"alg": "RS256", "kid": "k1"}, said, self.other if self.forged else self.key)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": token})
