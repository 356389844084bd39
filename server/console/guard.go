package console

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy lets a page use what comes from this node and nothing else: no script or style that
// stands in the page, no evaluation of texts, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// protect sets the headers of every answer.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}

// private lets a request pass whose secrets nobody else can read, and says whether it did: that
// come by TLS, from this machine, or if the plaintext is allowed. Who opens the page otherwise is
// sent to where there is TLS.
func (c *Console) private(w http.ResponseWriter, r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	here, required := isLoopback(r.RemoteAddr), c.opt.RequireTLS != nil && c.opt.RequireTLS()
	switch {
	case !required && c.opt.AllowPlaintext:
		return true
	case !required && here && c.knownHost(r.Host):
		return true
	case !required && here:
		c.fail(w, errHost)
	case c.opt.TLS && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !strings.HasPrefix(r.URL.Path, Path+"api/"):
		http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusTemporaryRedirect)
	default:
		c.fail(w, errInsecure)
	}
	return false
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// knownHost says whether a page of this name is ours: the browser of this machine may be led
// here by a name of somebody else.
func (c *Console) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil || slices.Contains(c.opt.Hosts, host)
}

// answering turns what a handler returns into an answer.
func (c *Console) answering(h func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// A run takes its time first; write sets another one when the answer is there. What does not apply to
		// a connection (of a test) does no harm.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answeringMax + runMost))
		if err := h(w, r); err != nil {
			c.fail(w, err)
		}
	}
}

// known lets requests pass of who is signed in; those that are no GET need his token.
func (c *Console) known(h func(w http.ResponseWriter, r *http.Request, s *signIn) error) http.HandlerFunc {
	return c.answering(func(w http.ResponseWriter, r *http.Request) error {
		s := c.signedIn(r)
		if s == nil {
			return errSignedOut
		}
		if r.Method != http.MethodGet && !equal(r.Header.Get(headerToken), s.token) {
			return errToken
		}
		defer c.opt.Hold(r.Context())()
		if r.URL.Path == pathEvents {
			return h(w, r, s)
		}
		leave := c.requests.EnterFrom(s.caller.id().Text())
		if leave == nil {
			return errRequests
		}
		defer leave()
		return h(w, r, s)
	})
}

// read reads a request of JSON.
func read(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errForm
	}
	body, err := readAll(w, r, most)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return badRequest("the request is not the JSON that is wanted")
	}
	return nil
}

func readAll(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLarge) {
		return nil, badRequest("the request did not come whole")
	}
	return body, err
}
