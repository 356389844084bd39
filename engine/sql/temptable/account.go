package temptable

import (
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/types"
)

// ErrnoCapacity is MySQL's number of the error for a statement that needs more memory
// than it may have, where going to disk is no way out.
const ErrnoCapacity = 3170

// Config is what the structures of one statement share. FS nil: nothing is spilled.
type Config struct {
	Env    env.Env
	FS     file.FS
	Dir    string // of temporary files; made if it is missing
	Memory *Account
	// MinWork is what a structure may hold before it goes to disk, however little the
	// statement has left, in bytes; 0: 64 KiB.
	MinWork int64
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
}

// NewAccount returns an account with a limit; 0 is none.
func NewAccount(limit int64) *Account { return &Account{limit: limit} }

// Reset forgets what was used and sets the limit anew.
func (a *Account) Reset(limit int64) { *a = Account{limit: limit} }

// Add counts n more bytes, or fewer if n is negative. It does not refuse: what is
// there is there; see [Account.Fits].
func (a *Account) Add(n int64) {
	a.used += n
	a.peak = max(a.peak, a.used)
}

// Fits reports whether n more bytes are within the limit.
func (a *Account) Fits(n int64) bool { return a.limit == 0 || a.used+n <= a.limit }

// Used is what is counted now, Peak the most that was.
func (a *Account) Used() int64 { return a.used }

// Peak is the most that was counted.
func (a *Account) Peak() int64 { return a.peak }

// Limit is the limit, 0 for none.
func (a *Account) Limit() int64 { return a.limit }

// Spilled is the number of bytes written to temporary files.
func (a *Account) Spilled() int64 { return a.spilled }

// Exceeded is the error for work on what that cannot go to disk.
func (a *Account) Exceeded(what string) error {
	return types.NewError(ErrnoCapacity, "Memory capacity of %d bytes for '%s' exceeded. %s",
		a.limit, what, "Raise tmp_table_size, or let the statement keep less.")
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
