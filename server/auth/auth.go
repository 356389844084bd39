package auth

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// Methods of authentication.
const (
	SHA2   = priv.SHA2
	Native = priv.Native
)

// Account is what is known of an account.
type Account struct {
	User, Host string // as the account is named: the host is a pattern
	Plugin     string
	Hash       string // authentication_string; empty: no password
	Second     string // authentication_string of the password of before, where it still works
	Locked     bool
	Expired    bool // the password has to be changed first
	Tries      Tries
	Require    Requirement
	// Stale says that this member does not know whether the account has been changed: whoever does
	// not get in by what is known here may do so elsewhere.
	Stale bool
	// Administers says whether it may take the administrator's place (CONNECTION_ADMIN, SUPER);
	// nil: no. To find out takes longer than to check a password.
	Administers func() bool
}

// Admin reports whether the account may take the administrator's place.
func (a *Account) Admin() bool { return a.Administers != nil && a.Administers() }

// Credential tells accounts apart by how a client proves itself to them, and tells nobody how.
func (a *Account) Credential() []byte {
	of := "trireme account\x00" + a.Plugin + "\x00" + a.Hash
	if a.Second != "" { // members that do not know of it take nobody who has come by either
		of += "\x00" + a.Second
	}
	sum := sha256.Sum256([]byte(of))
	return sum[:]
}

// Closed is why a client does not get in by the account, whatever the password: nil, it does. resets says that the
// client can go on with a session that may do nothing but change an expired password.
func (a *Account) Closed(user, host string, resets bool) *sqlerr.Error {
	switch {
	case a.Locked:
		return sqlerr.New(sqlerr.AccountHasBeenLocked, user, host)
	case a.Expired && !resets:
		return sqlerr.New(sqlerr.MustChangePasswordLogin)
	}
	return nil
}

// Source finds the account that a user who comes from a host, or its address, is to be
// matched with.
type Source interface {
	// Account finds an account; an error says that accounts cannot be read now, and is for the client.
	Account(user, host, address string) (acct Account, known bool, err error)
}

// Options configure an Authenticator. Source is required.
type Options struct {
	Source Source
	// DefaultPlugin is the method that unknown users are asked by: caching_sha2_password.
	DefaultPlugin string
	// KeyFile has the RSA key as PEM by which passwords are sent without TLS; empty: one
	// is made.
	KeyFile string

	// FreeFailures is how often a user may fail from an address before it is slowed
	// down: 3. DelayMax is the longest delay: 5 s.
	FreeFailures int
	DelayMax     time.Duration

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: none
}

// Authenticator checks clients. All methods are safe for concurrent use.
type Authenticator struct {
	opt Options
	// hashing limits how many passwords are hashed at a time: each takes milliseconds.
	hashing chan struct{}

	keyOnce sync.Once
	key     *rsa.PrivateKey
	keyPEM  []byte

	mu       sync.Mutex
	digests  map[digestKey]digest
	failures map[failureKey]*failure
	tried    map[triedKey]*tried
}

type accountName struct{ user, host string }

// digestKey is whose password a digest is of: the account's, or its second one.
type digestKey struct {
	accountName
	second bool
}

// digest is SHA256(SHA256(password)) of a password that was checked against hash.
type digest struct {
	hash string
	sum  [sha256.Size]byte
}

const (
	maxDigests  = 10_000
	maxFailures = 10_000
)

// New returns an authenticator. Errors are of the key file.
func New(opt Options) (*Authenticator, error) {
	if opt.DefaultPlugin == "" {
		opt.DefaultPlugin = SHA2
	}
	if opt.FreeFailures == 0 {
		opt.FreeFailures = 3
	}
	if opt.DelayMax == 0 {
		opt.DelayMax = 5 * time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	a := &Authenticator{opt: opt, hashing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0))),
		digests:  make(map[digestKey]digest),
		failures: make(map[failureKey]*failure), tried: make(map[triedKey]*tried)}
	if opt.KeyFile != "" {
		if err := a.readKey(opt.KeyFile); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Find returns the account of a user that comes from a host. One that is not known gets
// an account that no password opens. Errors: those of the source.
func (a *Authenticator) Find(user, host, address string) (acct Account, known bool, err error) {
	if acct, known, err = a.opt.Source.Account(user, host, address); known || err != nil {
		return acct, known, err
	}
	return Account{User: user, Host: host, Plugin: a.opt.DefaultPlugin, Hash: nobody, Stale: acct.Stale}, false, nil
}

// Meets reports whether a client that has proved its password comes as the account requires. Why it does
// not the log tells: the client hears no more than of a wrong password.
func (a *Authenticator) Meets(acct *Account, ch *Channel) bool {
	if acct.Require.Met(ch) {
		return true
	}
	a.opt.Log.Info("a client was refused for what its account REQUIREs", "user", acct.User, "host", acct.Host,
		"type", acct.Require.Kind, "tls", ch.TLS(), "subject", ch.Subject, "issuer", ch.Issuer)
	return false
}

// nobody has the form of a hash, so that checking it takes the usual time.
var nobody = "$A$005$" + strings.Repeat("0", 20) + strings.Repeat(".", 43)

// CheckNative checks the answer to a nonce against an account of mysql_native_password.
func CheckNative(acct *Account, nonce, answer []byte) bool {
	return priv.CheckNative(acct.Hash, nonce, answer) || priv.CheckNative(acct.Second, nonce, answer)
}

// hashes are those of the account's passwords.
func (a *Account) hashes() [2]string { return [2]string{a.Hash, a.Second} }

// CheckFast checks the answer to a nonce against the digest in memory.
func (a *Authenticator) CheckFast(acct *Account, nonce, answer []byte) bool {
	if len(answer) != sha256.Size {
		return false
	}
	for i, hash := range acct.hashes() {
		a.mu.Lock()
		d, ok := a.digests[digestKey{accountName{acct.User, acct.Host}, i > 0}]
		a.mu.Unlock()
		if ok && d.hash == hash && d.answers(nonce, answer) {
			return true
		}
	}
	return false
}

// answers reports whether an answer is that of who knows the password.
func (d *digest) answers(nonce, answer []byte) bool {
	// answer = SHA256(password) XOR SHA256(digest + nonce)
	h := sha256.New()
	h.Write(d.sum[:])
	h.Write(nonce)
	var first [sha256.Size]byte
	subtle.XORBytes(first[:], answer, h.Sum(nil))
	second := sha256.Sum256(first[:])
	return subtle.ConstantTimeCompare(second[:], d.sum[:]) == 1
}

// Remembers reports whether the digests of the account's passwords are in memory, so that an
// answer that [Authenticator.CheckFast] does not take is a wrong guess.
func (a *Authenticator) Remembers(acct *Account) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, hash := range acct.hashes() {
		if d, ok := a.digests[digestKey{accountName{acct.User, acct.Host}, i > 0}]; hash != "" && (!ok || d.hash != hash) {
			return false
		}
	}
	return acct.Hash != ""
}

// CheckPassword checks a password against the account's hash, and remembers its digest
// if it is right. It waits while many others are checked.
func (a *Authenticator) CheckPassword(ctx context.Context, acct *Account, password []byte) bool {
	select {
	case a.hashing <- struct{}{}:
		defer func() { <-a.hashing }()
	case <-ctx.Done():
		return false
	}
	hash, second := acct.Hash, false
	if !priv.CheckSHA2(hash, password) {
		if hash, second = acct.Second, true; !priv.CheckSHA2(hash, password) {
			return false
		}
	}
	first := sha256.Sum256(password)
	d := digest{hash: hash, sum: sha256.Sum256(first[:])}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.digests) >= maxDigests {
		for name := range a.digests { // any one
			delete(a.digests, name)
			break
		}
	}
	a.digests[digestKey{accountName{acct.User, acct.Host}, second}] = d
	return true
}
