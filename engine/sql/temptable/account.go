package temptable

import (
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Config is what the structures of one statement share. FS nil: nothing is spilled.
type Config struct {
	Env    env.Env
	FS     file.FS
	Dir    string // of temporary files; made if it is missing
	Memory *Account
	Disk   *DiskShare // what the session takes for temporary files; nil: there is no limit
	// MinWork is what a structure may hold before it goes to disk, however little the
	// statement has left, in bytes; 0: 64 KiB.
	MinWork int64
	// Stop is asked now and then by what takes long: the error of a statement that is to end. nil: nothing ends it.
	Stop func() error
}

func (c *Config) stopped() error {
	if c.Stop == nil {
		return nil
	}
	return c.Stop()
}

func (c *Config) minWork() int64 {
	if c.MinWork > 0 {
		return c.MinWork
	}
	return 64 << 10
}

// Account is the memory of a statement, in bytes. It belongs to one task.
type Account struct {
	used, peak, limit int64
	spilled           int64 // bytes written to temporary files

	share   *Share
	taken   int64 // of the share: used, and what is left of the last grain
	crowded bool  // what was refused last was so because of the share
}

// NewAccount returns an account with a limit; 0 is none.
func NewAccount(limit int64) *Account { return &Account{limit: limit} }

// Begin forgets what was used, and gives the account a limit (0: none) and the session's share
// of what the node has (nil: of no limit).
func (a *Account) Begin(limit int64, share *Share) {
	a.End()
	*a = Account{limit: limit, share: share}
}

// End gives back what the account has taken of its share. What is counted afterwards, before
// the next Begin, is taken of none.
func (a *Account) End() {
	if a.share != nil {
		a.share.take(-a.taken)
		a.share, a.taken = nil, 0
	}
}

// Add counts n more bytes, or fewer if n is negative. It does not refuse: what is
// there is there; see [Account.Fits].
func (a *Account) Add(n int64) {
	a.used += n
	a.peak = max(a.peak, a.used)
	if a.share != nil && (a.used > a.taken || a.used < a.taken-2*grain) {
		a.settle()
	}
}

// settle takes of the share what is used, in grains.
func (a *Account) settle() {
	want := (max(a.used, 0) + grain - 1) / grain * grain
	a.share.take(want - a.taken)
	a.taken = want
}

// Fits reports whether n more bytes are within the limit, and within what the statements
// of the node may have together.
func (a *Account) Fits(n int64) bool {
	a.crowded = false
	if a.limit != 0 && a.used+n > a.limit {
		return false
	}
	a.crowded = a.share != nil && !a.share.fits(a.used+n-a.taken)
	return !a.crowded
}

// Beyond reports whether so much is used that even what cannot go to disk has to end: factor
// times the limit, or more than all statements of the node may have.
func (a *Account) Beyond(factor int64) bool {
	a.crowded = false
	if a.used > factor*max(a.limit, 1<<20) {
		return true
	}
	a.crowded = a.share != nil && a.share.beyond()
	return a.crowded
}

// Crowded reports whether sessions have so much more than the budget together that this one, which is not modest, must not go on, since
// what each needs at least is too much for so many.
func (a *Account) Crowded() bool { return a.share != nil && a.share.crowded() }

// Used is what is counted now, Peak the most that was.
func (a *Account) Used() int64 { return a.used }

// Peak is the most that was counted.
func (a *Account) Peak() int64 { return a.peak }

// Limit is the limit, 0 for none.
func (a *Account) Limit() int64 { return a.limit }

// Spilled is the number of bytes written to temporary files.
func (a *Account) Spilled() int64 { return a.spilled }

// Room is how much may be used in all as things are, 0 for no limit.
func (a *Account) Room() int64 {
	if a.share != nil {
		if room := a.share.room(); room != 0 && (a.limit == 0 || room < a.limit) {
			return room
		}
	}
	return a.limit
}

// Exceeded is the error for work on what that cannot go to disk, after Fits or Beyond has said
// that there is no room for it: it names the limit that was met.
func (a *Account) Exceeded(what string) error {
	if a.crowded {
		return a.share.Exceeded(what)
	}
	return sqlerr.New(sqlerr.CapacityExceeded, a.limit, what, "Raise trireme_statement_memory, or let the statement "+
		"keep less.")
}

// charge is what a structure has reserved.
type charge struct {
	a *Account
	n int64
}

// set makes the reservation n bytes.
func (c *charge) set(n int64) {
	if n != c.n {
		c.a.Add(n - c.n)
		c.n = n
	}
}
