package node_test

import (
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triremedb/trireme/server/auth/authtest"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// TestPeerAuthorities: nodes take each other's certificates if an authority that one trusts has signed the other's.
func TestPeerAuthorities(t *testing.T) {
	t.Parallel()
	before, after := authtest.NewAuthority(t, "before"), authtest.NewAuthority(t, "after")
	of := func(by *authtest.Authority, trusted ...*authtest.Authority) node.Authorities {
		dir := t.TempDir()
		var ca []byte
		for _, a := range trusted {
			ca = append(ca, a.PEM()...)
		}
		leaf := by.Issue(pkix.Name{CommonName: "member"}, nil)
		files := map[string][]byte{"tls.crt": leaf.Cert, "tls.key": leaf.Key, "ca.crt": ca}
		var args []string
		for setting, name := range map[string]string{"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt"} {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, files[name], 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--peer-tls-"+setting+"="+file)
		}
		cfg, err := config.Load(config.Sources{Args: args})
		if err != nil {
			t.Fatal(err)
		}
		return node.PeerAuthorities(cfg)
	}
	old, bundle, fresh, last := of(before, before), of(before, before, after), of(after, before, after), of(after, after)
	for _, c := range []struct {
		name        string
		one, other  node.Authorities
		there, back bool
	}{
		{"the same authority", old, of(before, before), true, true},
		{"another one", old, last, false, false},
		{"a bundle", old, bundle, true, true},
		{"a bundle, and the new certificate", bundle, fresh, true, true},
		{"no step between", old, fresh, false, true},
		{"the new one alone", fresh, last, true, true},
		{"the new one alone, too early", bundle, last, true, false},
		{"an older program", node.Authorities{}, last, true, true},
	} {
		if there, back := c.one.Takes(&c.other), c.other.Takes(&c.one); there != c.there || back != c.back {
			t.Errorf("%s: %v, %v: %+v and %+v", c.name, there, back, c.one, c.other)
		}
	}
	if !slices.Equal(old.Signed, old.Trusted) || len(bundle.Trusted) != 2 || len(bundle.Signed) != 1 {
		t.Errorf("%+v, %+v", old, bundle)
	}
	cfg, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if a := node.PeerAuthorities(cfg); len(a.Trusted)+len(a.Signed) > 0 {
		t.Errorf("without TLS: %+v", a)
	}
}
