package ast

// KeyCache is CACHE INDEX or, with Load, LOAD INDEX INTO CACHE.
type KeyCache struct {
	source
	Load   bool
	Tables []KeyCacheTable
	Cache  string // of CACHE INDEX: default is the one that there is
}

// KeyCacheTable is a table with the indexes that are meant.
type KeyCacheTable struct {
	Table        TableName
	Indexes      []string // nil: all
	IgnoreLeaves bool
}

// cacheIndex stands behind CACHE.
func (r *reader) cacheIndex() Statement {
	r.need("INDEX")
	k := &KeyCache{}
	r.keyCacheTables(k)
	r.need("IN")
	if r.accept("DEFAULT") {
		k.Cache = "default"
	} else {
		k.Cache = r.name()
	}
	return k
}

// load stands behind LOAD. All but LOAD INDEX is the grammar's.
func (r *reader) load() Statement {
	if !r.accept("INDEX") {
		return nil
	}
	r.need("INTO", "CACHE")
	k := &KeyCache{Load: true}
	r.keyCacheTables(k)
	return k
}

func (r *reader) keyCacheTables(k *KeyCache) {
	for first := true; first || r.acceptOp(","); first = false {
		t := KeyCacheTable{Table: r.tableName()}
		if r.is("PARTITION") {
			r.failWith(unsupported("PARTITION"))
		}
		if r.oneOf("INDEX", "KEY") {
			t.Indexes = []string{}
			r.needOp("(")
			for first := true; !r.isOp(")") && (first || r.acceptOp(",")); first = false {
				if r.accept("PRIMARY") {
					t.Indexes = append(t.Indexes, "PRIMARY")
				} else {
					t.Indexes = append(t.Indexes, r.name())
				}
			}
			r.needOp(")")
		}
		t.IgnoreLeaves = k.Load && r.accept("IGNORE", "LEAVES")
		k.Tables = append(k.Tables, t)
	}
}

func (f *formatter) keyCache(s *KeyCache) {
	if s.Load {
		f.s("load index into cache ")
	} else {
		f.s("cache index ")
	}
	f.list(len(s.Tables), func(i int) {
		t := &s.Tables[i]
		f.table(t.Table)
		if t.Indexes != nil {
			f.s(" index ")
			f.names(t.Indexes)
		}
		f.opt(t.IgnoreLeaves, " ignore leaves")
	})
	switch {
	case s.Load:
	case lower(s.Cache) == "default":
		f.s(" in default")
	default:
		f.s(" in ")
		f.name(s.Cache)
	}
}
