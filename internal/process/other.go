//go:build !linux

package process

// Self says nothing here.
func Self() Identity { return Identity{} }

// Watch is never opened here.
type Watch struct{}

// Open fails: only Linux lets a process be told of the end of another that is no child.
func Open(Identity) (*Watch, error) { return nil, ErrElsewhere }

// Wait tells nothing.
func (*Watch) Wait() bool { return false }

// Close does nothing.
func (*Watch) Close() {}
