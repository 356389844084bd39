package plan

import "github.com/triremedb/trireme/engine/sql/ast"

// Select plans a query.
func Select(env *Env, q ast.Query) (*Query, error) {
	p := newPlanner(env)
	r, err := p.resolveQuery(q, &scope{schema: env.Schema})
	if err != nil {
		return nil, err
	}
	s, err := p.planQuery(r, nil, -1)
	if err != nil {
		return nil, err
	}
	return p.finish(s.node), nil
}
