package auth

import (
	"net/netip"
	"time"
)

// failureKey is whose failures are counted: a user's from one address, of IPv6 the network that one host has, so that nobody
// else is slowed down by a client that guesses.
type failureKey struct{ user, network string }

// network is as Network, of an address without a port.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return networkOf(ip)
}

type failure struct {
	count int
	last  time.Time
}

// forgetFailures is how long failures are remembered.
const forgetFailures = 10 * time.Minute

// Delay is how long the user has to wait before it is looked at: it doubles with every
// failure beyond the free ones.
func (a *Authenticator) Delay(user, address string) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.failures[failureKey{user, network(address)}]
	if f == nil || a.opt.Now().Sub(f.last) > forgetFailures {
		return 0
	}
	beyond := f.count - a.opt.FreeFailures
	if beyond < 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(beyond, 20), a.opt.DelayMax)
}

// Failed counts a failure.
func (a *Authenticator) Failed(user, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := failureKey{user, network(address)}
	f := a.failures[key]
	now := a.opt.Now()
	if f == nil {
		if len(a.failures) >= maxFailures {
			a.forgetOldFailures(now)
		}
		f = &failure{}
		a.failures[key] = f
	}
	if now.Sub(f.last) > forgetFailures {
		f.count = 0
	}
	f.count++
	f.last = now
}

// forgetOldFailures makes room: what is old goes, and if that is little, a quarter of all, so that a flood of names pays
// for it seldom. Those that have failed least often go first: who guesses at one account is not forgotten for names that
// he, or somebody else, makes up.
func (a *Authenticator) forgetOldFailures(now time.Time) {
	for key, f := range a.failures {
		if now.Sub(f.last) > forgetFailures {
			delete(a.failures, key)
		}
	}
	for least := 1; len(a.failures) > maxFailures*3/4; least *= 2 {
		for key, f := range a.failures {
			if f.count <= least {
				delete(a.failures, key)
			}
			if len(a.failures) <= maxFailures*3/4 {
				return
			}
		}
	}
}
