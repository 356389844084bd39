package json

// Same reports whether both are the value at one place of one document in memory.
func (v Value) Same(o Value) bool {
	return v.tag == o.tag && cap(v.data) == cap(o.data) && len(v.data) == len(o.data) &&
		(len(v.data) == 0 || &v.data[0] == &o.data[0])
}
