package auth

import (
	"context"
	"crypto/sha1" //nolint:gosec // the method's
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Login lets a client in that sends its password as it is, over a connection that keeps it
// secret. It waits where the user has guessed too often (Wait). Errors are *sqlerr.Error.
func (a *Authenticator) Login(ctx context.Context, stop <-chan struct{}, user, host, address, password string, ch *Channel) (Account, error) {
	if err := a.Wait(ctx, stop, user, address); err != nil {
		if ctx.Err() != nil {
			err = Denied(user, host, password != "")
		}
		return Account{}, err
	}
	return a.Prove(ctx, user, host, address, password, ch)
}

// Wait waits for as long as a user has to who has guessed too often. Errors: of the context, or 1053 when stop is closed.
func (a *Authenticator) Wait(ctx context.Context, stop <-chan struct{}, user, address string) error {
	delay := a.Delay(user, address)
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-stop:
		return sqlerr.New(sqlerr.ServerShutdown)
	}
}

// Prove is Login without the wait.
func (a *Authenticator) Prove(ctx context.Context, user, host, address, password string, ch *Channel) (Account, error) {
	acct, known, err := a.Find(user, host, address)
	if err != nil {
		return Account{}, err
	}
	if blocked := a.Blocked(&acct, user, host); blocked != nil {
		a.Failed(user, address)
		return Account{}, blocked
	}
	proved := a.check(ctx, &acct, []byte(password))
	if !known || !proved || !a.Meets(&acct, ch) {
		if ctx.Err() != nil { // it was not looked at to the end
			return Account{}, acct.Denied(user, host, password != "")
		}
		return Account{}, a.Refused(&acct, known, proved, user, host, address, password != "")
	}
	if closed := a.Admitted(&acct, user, host, address); closed != nil {
		return Account{}, closed
	}
	if closed := acct.Closed(user, host, false); closed != nil {
		return Account{}, closed
	}
	return acct, nil
}

// check checks a password by the account's method: a digest in memory first, which costs
// microseconds, then the hash, which costs milliseconds.
func (a *Authenticator) check(ctx context.Context, acct *Account, password []byte) bool {
	if len(password) == 0 {
		return acct.Hash == ""
	}
	if acct.Plugin == Native {
		return CheckNative(acct, constantNonce, nativeAnswer(password, constantNonce))
	}
	return a.CheckFast(acct, constantNonce, sha2Answer(password, constantNonce)) || a.CheckPassword(ctx, acct, password)
}

// constantNonce serves where the password itself has come: there is no answer to be replayed.
var constantNonce = make([]byte, 20)

// sha2Answer is a client's answer to a nonce by caching_sha2_password.
func sha2Answer(password, nonce []byte) []byte {
	first := sha256.Sum256(password)
	second := sha256.Sum256(first[:])
	third := sha256.Sum256(append(second[:], nonce...))
	subtle.XORBytes(first[:], first[:], third[:])
	return first[:]
}

// nativeAnswer is the same by mysql_native_password.
func nativeAnswer(password, nonce []byte) []byte {
	first := sha1.Sum(password)
	second := sha1.Sum(first[:])
	third := sha1.Sum(append(append([]byte(nil), nonce...), second[:]...))
	subtle.XORBytes(first[:], first[:], third[:])
	return first[:]
}
