package node

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/triremedb/trireme/server/users"
)

// bearer has a handler answer only who sends the token that is the first line of a file, which is read for each request: it is
// small, and changes. Without a file everybody is answered; where it cannot be read, or has none, nobody is.
func bearer(file string) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		if file == "" {
			return h
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, err := users.ReadPassword(file)
			if err != nil || token == "" {
				http.Error(w, "http_token_file has no token that could be read", http.StatusServiceUnavailable)
				return
			}
			given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
			if subtle.ConstantTimeCompare(want[:], got[:]) == 0 || !ok {
				w.Header().Set("WWW-Authenticate", `Bearer realm="trireme"`)
				http.Error(w, "this needs the token of http_token_file: Authorization: Bearer TOKEN", http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
}
