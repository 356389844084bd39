package session

import (
	"context"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// component is INSTALL COMPONENT and UNINSTALL COMPONENT. The only component there is, is that which checks passwords; it is
// a part of the server, and installed in all nodes of the group at once. Errors: 1126, 1142, 3529, 3537.
func (s *Session) component(ctx context.Context, st *ast.Component) error {
	need, command := priv.Insert, "INSERT"
	if st.Uninstall {
		need, command = priv.Delete, "DELETE"
	}
	if err := s.privileges().Table(priv.Schema, "component", need, command); err != nil {
		return err
	}
	return s.changeAccounts(ctx, nil, func(set *priv.Set, _ *priv.Active) error {
		for _, urn := range st.URNs {
			switch has := set.Component(urn); {
			case st.Uninstall && !has:
				return sqlerr.New(sqlerr.ComponentsUnloadNotLoaded, urn)
			case st.Uninstall:
				set.Components = slices.DeleteFunc(set.Components, func(name string) bool { return name == urn })
			case urn != priv.PasswordComponent:
				return sqlerr.New(sqlerr.CantOpenLibrary, urn, 0, "there is no such component in this server")
			case has:
				return sqlerr.New(sqlerr.ComponentsCantLoad, urn)
			default:
				set.Components = append(set.Components, urn)
			}
		}
		return nil
	})
}
