package mysqlwire

import "testing"

// TestExpiredPassword: a client that says that it can do with it gets a session that may only change the password.
func TestExpiredPassword(t *testing.T) {
	r := serve(t, nil)
	hello := func(caps capability) []byte {
		return appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData | caps, user: "late", plugin: PluginSHA2})
	}
	c := dialRaw(t, r.addr)
	c.send(hello(0))
	c.wantError(1862)
	if !c.ended() {
		t.Error("the connection stays")
	}
	c = dialRaw(t, r.addr)
	if c.g.capabilities&capExpiredPasswords == 0 {
		t.Error("the server does not say that it can")
	}
	c.send(hello(capExpiredPasswords))
	if p := c.read(); p[0] != headerOK {
		t.Fatalf("%q", p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.open {
		if !s.info.Expired {
			t.Error("the session does not know that the password has expired")
		}
	}
}
