package session

import (
	"context"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
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
				return newError(3537, "HY000", "Component specified by URN '%s' to unload has not been loaded before.", urn)
			case st.Uninstall:
				set.Components = slices.DeleteFunc(set.Components, func(name string) bool { return name == urn })
			case urn != priv.PasswordComponent:
				return newError(1126, "HY000", "Can't open shared library '%s' (errno: 0 there is no such component in this server)", urn)
			case has:
				return newError(3529, "HY000", "Cannot load component from specified URN: '%s'.", urn)
			default:
				set.Components = append(set.Components, urn)
			}
		}
		return nil
	})
}
