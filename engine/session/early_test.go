package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// Sessions move money between accounts at the same time, by text and prepared, some of
// them killed now and then: the sum holds in every snapshot.
func TestTransfers(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("early=%v", early), func(t *testing.T) { transfers(t, early) })
	}
}

const accounts = 8

func transfers(t *testing.T, early bool) {
	r := sessiontest.New(t, sessiontest.Options{Early: early})
	r.CreateSchema("bank")
	s := r.Open(session.ConnectionInfo{Schema: "bank"})
	r.Exec(s, "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)")
	for i := range accounts {
		r.Exec(s, fmt.Sprintf("INSERT INTO account VALUES (%d, 100)", i))
	}
	var group sync.WaitGroup
	var movers []*session.Session
	for range 4 {
		movers = append(movers, r.Open(session.ConnectionInfo{Schema: "bank"}))
	}
	for n, s := range movers {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 60 {
				if err := transfer(s, (n+i)%accounts, (n*3+i*5+1)%accounts); err != nil {
					t.Error(err)
					return
				}
				if i%10 == 9 {
					movers[(n+1)%len(movers)].Interrupt()
				}
			}
		}()
	}
	watch := r.Open(session.ConnectionInfo{Schema: "bank"})
	group.Add(1)
	go func() {
		defer group.Done()
		for range 60 {
			if got := r.Text(watch, "SELECT SUM(balance) FROM account"); got != fmt.Sprintf("SUM(balance)\n%d\n", accounts*100) {
				t.Errorf("the sum is %s", got)
				return
			}
		}
	}()
	group.Wait()
}

// transfer moves 1 from one account to another. Errors that a client has to live with
// roll it back.
func transfer(s *session.Session, from, to int) error {
	ctx := context.Background()
	for _, text := range []string{"BEGIN", fmt.Sprintf("UPDATE account SET balance = balance - 1 WHERE id = %d", from),
		fmt.Sprintf("UPDATE account SET balance = balance + 1 WHERE id = %d", to), "COMMIT"} {
		err := s.Query(ctx, text, sessiontest.Discard)
		if err == nil {
			continue
		}
		var e *sqlerr.Error
		if !errors.As(err, &e) || e.Number != 1213 && e.Number != 1317 && e.Number != 1205 {
			return err
		}
		return s.Query(ctx, "ROLLBACK", sessiontest.Discard)
	}
	return nil
}
