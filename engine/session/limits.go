package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/internal/turn"
)

// accountUses are what the accounts use of what is limited, on this node: where their sessions run.
type accountUses struct {
	mu sync.Mutex
	of map[priv.ID]*accountUse
}

// accountUse is shared by an account's sessions.
type accountUse struct {
	// counts says that statements are limited: sessions look at it before they lock.
	counts atomic.Bool
	// begins says that the account limits how many of its sessions there are, or begin in an hour.
	begins atomic.Bool
	// disk is what temporary files of its sessions take.
	disk temptable.DiskOwner
	// work is what its statements have of the processors.
	work turn.Owner

	mu                              sync.Mutex
	limits                          priv.Limits // as of the last session that began
	sessions                        uint32
	hour                            time.Duration // when the present one began
	questions, updates, connections uint32        // in it
}

// admit counts a session in. Errors: 1203, 1226.
func (u *accountUses) admit(s *Session, id priv.ID, limits priv.Limits, most uint32) error {
	now := s.env.Monotonic()
	u.mu.Lock()
	if u.of == nil {
		u.of = map[priv.ID]*accountUse{}
	}
	of := u.of[id]
	if of == nil {
		of = &accountUse{hour: now}
		u.of[id] = of
	}
	u.mu.Unlock()
	of.mu.Lock()
	defer of.mu.Unlock()
	of.limits = limits
	of.counts.Store(limits.Questions != 0 || limits.Updates != 0)
	of.begins.Store(limits.Connections != 0 || limits.UserConnections != 0)
	of.turn(now)
	switch {
	case limits.UserConnections == 0 && most != 0 && of.sessions >= most:
		return sqlerr.New(sqlerr.TooManyUserConnections, id.Name)
	case limits.UserConnections != 0 && of.sessions >= limits.UserConnections:
		return errResource(id, "max_user_connections", limits.UserConnections)
	case limits.Connections != 0 && of.connections >= limits.Connections:
		return errResource(id, "max_connections_per_hour", limits.Connections)
	}
	of.sessions++
	of.connections++
	s.uses, s.disk.Owner = of, &of.disk
	return nil
}

// Counted reports whether the session's account limits how many sessions it has, or begins in an hour: a door that
// keeps one for the next caller would keep another one out, or not count that caller.
func (s *Session) Counted() bool { return s.uses != nil && s.uses.begins.Load() }

// leave counts a session out.
func (s *Session) leaveUse() {
	if of := s.uses; of != nil {
		of.mu.Lock()
		of.sessions--
		of.mu.Unlock()
		s.uses = nil
	}
}

// forget begins the hour of all accounts anew.
func (u *accountUses) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, of := range u.of {
		of.mu.Lock()
		of.questions, of.updates, of.connections = 0, 0, 0
		of.mu.Unlock()
	}
}

// turn begins another hour if the present one is over. REQUIRES: mu.
func (of *accountUse) turn(now time.Duration) {
	if now-of.hour >= time.Hour {
		of.hour, of.questions, of.updates, of.connections = now, 0, 0, 0
	}
}

// countUse counts a statement, and says whether the session may begin one at all. Errors: 1226, 1820.
func (s *Session) countUse(st ast.Statement) error {
	if s.info.Expired {
		if err := s.mayBegin(st); err != nil {
			return err
		}
	}
	of := s.uses
	if of == nil || !of.counts.Load() || s.acl.system {
		return nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	of.turn(s.env.Monotonic())
	if l := of.limits.Questions; l != 0 {
		if of.questions >= l {
			return errResource(s.accountID(), "max_questions", l)
		}
		of.questions++
	}
	if l := of.limits.Updates; l != 0 && changesData(st) {
		if of.updates >= l {
			return errResource(s.accountID(), "max_updates", l)
		}
		of.updates++
	}
	return nil
}

// changesData reports whether a statement is one that MAX_UPDATES_PER_HOUR counts.
func changesData(st ast.Statement) bool {
	switch st.(type) {
	case ast.Query, *ast.Begin, *ast.Commit, *ast.Rollback, *ast.Savepoint, *ast.Release, *ast.Set, *ast.SetTransaction, *ast.Use, *ast.Do,
		*ast.GetDiagnostics, *ast.Signal, *ast.Handler, *ast.KeyCache,
		*ast.Prepare, *ast.Execute, *ast.Deallocate, *ast.Kill, *ast.Explain, *ast.LockTables, *ast.UnlockTables, *ast.Call, *ast.ReloadTLS,
		*ast.Show, *ast.Maintain, *ast.Flush, *ast.Help, *ast.SetRole:
		return false
	}
	return true
}

func errResource(id priv.ID, resource string, limit uint32) error {
	return sqlerr.New(sqlerr.UserLimitReached, id.Name, resource, limit)
}
