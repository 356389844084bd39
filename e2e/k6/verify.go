package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/e2e/servers"
)

// verify looks whether the group has what was acknowledged, each event once, and takes it away. In a
// group that was started here every member is asked.
func (t *target) verify(ctx context.Context, r *result) error {
	const query = "SELECT COUNT(*), COUNT(DISTINCT writer, n), (SELECT SUM(balance) = 1000 * COUNT(*) FROM " + schema + ".account) FROM " + schema + ".event"
	want := r.acknowledged()
	compare := func(who string, scan func(...any) error) error {
		var events, different int
		var balanced bool
		if err := scan(&events, &different, &balanced); err != nil {
			return fmt.Errorf("%s: %w", who, err)
		}
		if events != want || different != want {
			return fmt.Errorf("%s has %d events, of which %d are different; %d were acknowledged", who, events, different, want)
		}
		if !balanced {
			return fmt.Errorf("%s: transfers have changed the sum of all accounts", who)
		}
		return nil
	}
	where := "at the leader"
	errs := []error{compare(where, t.db.QueryRow(ctx, query).Scan)}
	if t.group != nil {
		where = "on each of the members"
		for _, n := range t.group.Nodes {
			errs = append(errs, strongly(ctx, n, func(c *sql.Conn) error {
				return compare(fmt.Sprintf("node %d", n.Number), c.QueryRowContext(ctx, query).Scan)
			}))
		}
	}
	if want > 0 && errors.Join(errs...) == nil {
		r.note("%d events were acknowledged, which are there once %s", want, where)
	}
	_, err := t.db.Exec(ctx, "DROP DATABASE "+schema)
	return errors.Join(append(errs, err)...)
}

// strongly asks what a node has itself, with nothing missing.
func strongly(ctx context.Context, n *servers.Node, do func(*sql.Conn) error) error {
	db, err := sql.Open("mysql", n.ReadDSN("", nil))
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "SET SESSION trireme_read_consistency = 'STRONG', SESSION trireme_read_wait = 60"); err != nil {
		return err
	}
	return do(c)
}
