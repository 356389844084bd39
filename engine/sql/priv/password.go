package priv

import (
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// The plugins that accounts can have.
const (
	SHA2   = "caching_sha2_password"
	Native = "mysql_native_password"
	NoAuth = "mysql_no_login"
)

// HashPassword is the authentication_string of a password for a plugin. An empty
// password has an empty hash. salt gives random bytes. Error: 1524.
func HashPassword(plugin, password string, salt func() byte) (string, error) {
	switch {
	case !KnownPlugin(plugin):
		return "", sqlerr.New(sqlerr.PluginIsNotLoaded, plugin)
	case password == "":
		return "", nil
	case strings.EqualFold(plugin, Native):
		return HashNative([]byte(password)), nil
	}
	b := make([]byte, saltSize)
	for i := range b {
		for {
			b[i] = salt() & 0x7f
			if b[i] != 0 && b[i] != '$' {
				break
			}
		}
	}
	return HashSHA2([]byte(password), b), nil
}

// KnownPlugin reports whether accounts can have a plugin.
func KnownPlugin(name string) bool {
	return strings.EqualFold(name, SHA2) || strings.EqualFold(name, Native) || strings.EqualFold(name, NoAuth)
}

// CheckHash checks an authentication_string that a statement gives. Error: 1827.
func CheckHash(plugin, hash string) error {
	ok := hash == ""
	switch {
	case strings.EqualFold(plugin, Native):
		ok = ok || len(hash) == 41 && hash[0] == '*'
	case strings.EqualFold(plugin, SHA2):
		ok = ok || len(hash) == hashPrefix+saltSize+digestSize && strings.HasPrefix(hash, "$A$")
	default:
		ok = true
	}
	if !ok {
		return sqlerr.New(sqlerr.PasswordFormat)
	}
	return nil
}
