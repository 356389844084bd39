package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// BootstrapOptions say what account a new group begins with.
type BootstrapOptions struct {
	User, Host   string // root and % if empty
	Plugin, Hash string // authentication_string; an empty hash needs no password
}

// Bootstrap makes the system tables and the first account of a new group, in one
// transaction. It is for the node that leads, and does nothing where they are there. made
// reports whether it has made them.
func (m *Manager) Bootstrap(ctx context.Context, opt BootstrapOptions) (made bool, err error) {
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return false, err
	}
	if _, err := eng.Catalog.FindSchema(nil, priv.Schema); err == nil {
		return false, nil
	}
	if opt.User == "" {
		opt.User = "root"
	}
	if opt.Plugin == "" {
		opt.Plugin = priv.SHA2
	}
	if err := priv.CheckHash(opt.Plugin, opt.Hash); err != nil {
		return false, err
	}
	s, err := m.Open(ConnectionInfo{User: opt.User, Host: "localhost", Admin: true, system: true})
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	s.beginStatement(ctx, nil)
	err = s.inTransaction(ctx, func() error {
		if _, err := s.txn.CreateSchema(dict.Schema{Name: priv.Schema, Collation: types.CollationUTF8MB40900AI}, nil); err != nil {
			return err
		}
		if err := s.makeSystemTables(); err != nil {
			return err
		}
		set := priv.NewSet()
		root := set.Add(priv.NewID(opt.User, opt.Host))
		root.Plugin, root.Hash, root.Global = opt.Plugin, opt.Hash, priv.GlobalMask
		root.Changed = types.Timestamp(s.x.Now.UnixMicro() / 1e6 * 1e6)
		for _, d := range priv.DynamicPrivileges() {
			root.Dynamic[d] = true
		}
		return writeAccounts(s.txn, s.eng, priv.NewSet(), set)
	})
	m.forgetAccounts()
	return err == nil, err
}

// Upgrade adds to the system tables what a group that has begun with an older version lacks. It is for the node that
// leads, before clients come, and does nothing where all is there.
func (m *Manager) Upgrade(ctx context.Context) (err error) {
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return err
	}
	var missing []string // statements
	for i, name := range priv.TableNames {
		h, err := eng.Catalog.OpenTable(nil, priv.Schema, name)
		switch {
		case errors.Is(err, table.ErrNoTable) && priv.Added(name):
			missing = append(missing, priv.Tables()[i])
			continue
		case err != nil:
			return err
		}
		if i == 0 && dict.FindColumn(h.Table().Schema.Table, priv.AddedColumn) == nil {
			missing = append(missing, priv.AddColumns)
		}
		h.Release()
	}
	if len(missing) == 0 {
		return nil
	}
	s, err := m.Open(ConnectionInfo{User: "system", Host: "localhost", Admin: true, system: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, text := range missing {
		statements, err := ast.Parse(text, 0)
		if err != nil {
			return err
		}
		s.beginStatement(ctx, nil)
		if _, err := s.dispatch(ctx, statements[0]); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (s *Session) makeSystemTables() error {
	for _, text := range priv.Tables() {
		statements, err := ast.Parse(text, 0)
		if err != nil {
			return err
		}
		env, err := s.definitionEnv(priv.Schema)
		if err != nil {
			return err
		}
		def, err := catalog.Define(env, priv.Schema, statements[0].(*ast.CreateTable), nil)
		if err != nil {
			return err
		}
		catalog.SetTimes(def, s.x.Now.UnixMicro(), 0)
		if _, err := s.txn.CreateTable(def, nil); err != nil {
			return err
		}
	}
	return nil
}
