package ast

// Into is SELECT .. INTO @a, @b, or INTO OUTFILE, or INTO DUMPFILE.
type Into struct {
	Vars []string
	File *IntoFile // nil: variables
}

// IntoFile is a file of the node's that a query's rows go to.
type IntoFile struct {
	Name    string
	Dump    bool   // one row's bytes as they are: there are no options
	Charset string // empty: values keep their own
	Fields  LoadFields
	Lines   LoadLines
}

// intoFile stands at OUTFILE or DUMPFILE.
func (r *reader) intoFile() *IntoFile {
	f := &IntoFile{Dump: r.is("DUMPFILE"), Fields: LoadFields{Terminated: "\t", Escaped: "\\"}, Lines: LoadLines{Terminated: "\n"}}
	r.advance()
	f.Name = r.str()
	if f.Dump {
		return f
	}
	if r.accept("CHARSET") || r.accept("CHARACTER", "SET") {
		f.Charset = r.nameOrString()
	}
	if r.oneOf("FIELDS", "COLUMNS") {
		r.fileOptions(map[string]func(string){
			"TERMINATED": func(s string) { f.Fields.Terminated = s },
			"ENCLOSED":   func(s string) { f.Fields.Enclosed = s },
			"OPTIONALLY": func(s string) { f.Fields.Enclosed, f.Fields.OptionallyEnclosed = s, true },
			"ESCAPED":    func(s string) { f.Fields.Escaped = s },
		})
	}
	if r.accept("LINES") {
		r.fileOptions(map[string]func(string){
			"TERMINATED": func(s string) { f.Lines.Terminated = s },
			"STARTING":   func(s string) { f.Lines.Starting = s },
		})
	}
	return f
}

// fileOptions reads options of the form WORD BY 'text', of which there is at least one.
func (r *reader) fileOptions(options map[string]func(string)) {
	for first := true; ; first = false {
		set := options[upper(r.raw())]
		if r.tok.kind != tWord || set == nil {
			if first {
				r.fail()
			}
			return
		}
		if r.accept("OPTIONALLY") {
			r.need("ENCLOSED")
		} else {
			r.advance()
		}
		r.need("BY")
		set(r.bytesLiteral())
	}
}

// bytesLiteral reads a string, or a number that stands for bytes.
func (r *reader) bytesLiteral() string {
	if r.tok.kind != tString && r.tok.kind != tHex && r.tok.kind != tBit {
		r.fail()
		return ""
	}
	l, ok := r.plainValue().(*Literal)
	if !ok || r.err != nil {
		r.fail()
		return ""
	}
	return string(l.Value.Bytes())
}

func (f *formatter) into(i *Into) {
	switch {
	case i == nil:
	case i.File == nil:
		f.s(" into ")
		f.list(len(i.Vars), func(n int) { f.s("@"); f.name(i.Vars[n]) })
	default:
		f.intoFile(i.File)
	}
}

func (f *formatter) intoFile(x *IntoFile) {
	if x.Dump {
		f.s(" into dumpfile ")
		f.quote(x.Name)
		return
	}
	f.s(" into outfile ")
	f.quote(x.Name)
	f.fileFormat(x.Charset, &x.Fields, &x.Lines)
}
