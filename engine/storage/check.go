package storage

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Check looks at every structure of the engine: tablespaces and their books, the
// trees, rows, secondary entries and off-page values of every table, the
// catalogue's included, and the undo streams. Each finding goes to report as a line
// of text, as it is made. How much is found depends on the state that the caller
// promises; see table.CheckState. The error is that the check could not go on.
func (e *Engine) Check(state table.CheckState, report func(finding string)) error {
	if err := e.Tables.Enter(); err != nil {
		return err
	}
	defer e.Tables.Leave()
	tables, err := e.userTables()
	if err != nil {
		return err
	}
	if err := e.checkSystem(state, report); err != nil {
		return err
	}
	if state != table.CheckOnline {
		if err := e.checkUndo(report); err != nil {
			return err
		}
	}
	for _, id := range tables {
		if err := e.checkTable(id, state, report); err != nil {
			return err
		}
	}
	return nil
}

// userTables lists the tables that are not the catalogue's own.
func (e *Engine) userTables() ([]uint64, error) {
	var ids []uint64
	err := e.Catalog.Tables(nil, func(def *record.Table) error {
		ids = append(ids, def.ID)
		return nil
	})
	return ids, err
}

func (e *Engine) checkTable(id uint64, state table.CheckState, report func(string)) error {
	t := e.Trx.Begin(trx.Options{})
	defer e.Trx.End(t)
	h, err := e.Catalog.OpenTableByID(t, id)
	if errors.Is(err, table.ErrNoTable) {
		return nil // dropped meanwhile
	}
	if err != nil {
		return err
	}
	defer h.Release()
	_, err = h.Table().Check(table.CheckOptions{State: state}, func(f table.Finding) { report(f.String()) })
	return err
}

// checkSystem checks the system tablespace with the catalogue's tables.
func (e *Engine) checkSystem(state table.CheckState, report func(string)) error {
	opt := table.CheckOptions{State: state}
	var lobs uint32
	if state != table.CheckOnline {
		var err error
		opt.Space, err = e.Spaces.Get(space.System).NewCheck(func(f space.Finding) {
			// Pages of off-page values that only undo refers to are not told from lost ones.
			if state == table.CheckPurged || f.Segment != lobs || f.Segment == 0 {
				report("system tablespace: " + f.String())
			}
		})
		if err != nil {
			return err
		}
		seg, err := e.ownerOf(page.ID{Space: space.System, No: trx.SystemPage})
		if err != nil {
			return err
		}
		opt.Space.Reach(seg, trx.SystemPage)
	}
	for _, t := range e.Catalog.SystemTables() {
		lobs = t.Where.LOBSegment
		if _, err := t.Check(opt, func(f table.Finding) { report(f.String()) }); err != nil {
			return err
		}
	}
	if opt.Space != nil {
		opt.Space.Finish()
	}
	return nil
}

// ownerOf reads the owner's number in a page's header.
func (e *Engine) ownerOf(id page.ID) (uint32, error) {
	m := mtr.New(e.Pool)
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(id, mtr.S)
	if err != nil {
		return 0, err
	}
	return uint32(page.GetOwner(p.Data)), nil
}

// checkUndo checks the undo tablespaces and their streams.
func (e *Engine) checkUndo(report func(string)) error {
	checks := map[uint32]*space.Check{}
	var order []*space.Check
	for _, no := range e.Spaces.List() {
		if no < space.FirstUndo {
			continue
		}
		c, err := e.Spaces.Get(no).NewCheck(func(f space.Finding) {
			report(fmt.Sprintf("undo tablespace %d: %v", no-space.FirstUndo, f))
		})
		if err != nil {
			return err
		}
		seg, err := e.ownerOf(page.ID{Space: no, No: undo.DirectoryPage})
		if err != nil {
			return err
		}
		c.Reach(seg, undo.DirectoryPage)
		checks[no] = c
		order = append(order, c)
	}
	e.Trx.Undo().Check(
		func(f undo.Finding) { report(f.String()) },
		func(sp, seg, no uint32) { checks[sp].Reach(seg, no) })
	for _, c := range order {
		c.Finish()
	}
	return nil
}
