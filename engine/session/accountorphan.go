package session

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
)

// orphans looks whether accounts that come or go are definers of views: a view whose definer is dropped serves nobody, and who
// makes that account later runs it. Who holds ALLOW_NONEXISTENT_DEFINER is warned (4005), others are refused (4006).
func (s *Session) orphans(operation string, ids []priv.ID, by *priv.Active) error {
	used, err := s.definersOfViews(ids)
	if err != nil {
		return err
	}
	for _, id := range used {
		if by.Needs(0, priv.OrphanDefiner) != nil {
			return sqlerr.New(sqlerr.CannotUserReferencedAsDefiner, operation, id.Text(), "a view")
		}
		s.diag.warn(sqlerr.New(sqlerr.UserReferencedAsDefiner, id.Text(), "a view"))
	}
	return nil
}

// definersOfViews are those of the accounts that are definers of views.
func (s *Session) definersOfViews(ids []priv.ID) (used []priv.ID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.eng.Catalog.Tables(nil, func(def *record.Table) error { // their definitions alone: none is opened for it
		v, ok := catalog.ViewOf(def)
		if id := priv.NewID(v.Definer.Name, v.Definer.Host); ok && slices.Contains(ids, id) && !slices.Contains(used, id) {
			used = append(used, id)
		}
		return s.interrupted()
	})
	return used, err
}
