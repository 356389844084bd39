package catalog

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// KeptOnly is the warning about an option or a clause that is taken so that statements made for MySQL run, but that
// does nothing.
func KeptOnly(what string) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.NotSupportedYet, "%s is accepted for compatibility only and has no effect", what)
}

// options applies the options of a table. What does nothing here is told in a warning; what MySQL refuses, and what
// would promise a property that the table does not have, is an error.
func (d *definer) options(opts []ast.TableOption) error {
	charset, collate := "", ""
	for i := range opts {
		o := &opts[i]
		switch strings.ToUpper(o.Name) {
		case "CHARSET", "CHARACTER SET":
			charset = o.Value
		case "COLLATE":
			collate = o.Value
		}
	}
	if charset != "" || collate != "" {
		id, err := Collation(charset, collate, d.env.Collation)
		if err != nil {
			return err
		}
		d.t.Collation = id
	}
	for i := range opts {
		if err := d.option(&opts[i]); err != nil {
			return err
		}
	}
	return d.checkPageSize(opts)
}

func (d *definer) option(o *ast.TableOption) error {
	name := strings.ToUpper(o.Name)
	switch name {
	case "CHARSET", "CHARACTER SET", "COLLATE":
	case "ENGINE":
		return d.engine(o.Value)
	case "COMMENT":
		text, err := d.comment(o.Value, 2048, sqlerr.TooLongTableComment, d.t.Name)
		if err != nil {
			return err
		}
		d.t.Comment = text
	case "AUTO_INCREMENT":
		value := ""
		if o.Number > 1 {
			value = number(o.Number)
		}
		setOption(d.t, attrAuto, value)
	case "MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH", "CHECKSUM", "DELAY_KEY_WRITE", "KEY_BLOCK_SIZE":
		if name == "KEY_BLOCK_SIZE" && !slices.Contains([]uint64{0, 1, 2, 4, 8, 16}, o.Number) {
			return d.unfit(name,
				sqlerr.Newf(sqlerr.IllegalHACreateOption,
					"InnoDB: invalid KEY_BLOCK_SIZE = %d. Valid values are [1, 2, 4, 8, 16]", o.Number),
				sqlerr.Newf(sqlerr.IllegalHACreateOption, "InnoDB: ignoring KEY_BLOCK_SIZE=%d.", o.Number))
		}
		value := ""
		if o.Number > 0 {
			value = number(o.Number)
			if name != "KEY_BLOCK_SIZE" {
				d.keptOption(name)
			}
		}
		setOption(d.t, attrOption+name, value)
	case "STATS_SAMPLE_PAGES":
		if o.Value == "DEFAULT" {
			setOption(d.t, attrOption+name, "")
			return nil
		}
		if o.Number < 1 || o.Number > 65535 {
			return sqlerr.Newf(sqlerr.ParseError, "The valid range for stats_sample_pages is [1, 65535]. Error near "+
				"'%d' at line 1", o.Number)
		}
		d.keptOption(name)
		setOption(d.t, attrOption+name, number(o.Number))
	case "PACK_KEYS":
		value := o.Value
		if value == "" {
			value = number(o.Number)
		}
		if strings.EqualFold(value, "DEFAULT") {
			value = ""
		} else {
			d.keptOption(name)
		}
		setOption(d.t, attrOption+name, value)
	case "ROW_FORMAT":
		return d.rowFormat(strings.ToUpper(o.Value))
	case "COMPRESSION":
		switch strings.ToLower(o.Value) {
		case "", "none":
		case "zlib", "lz4":
			d.keptOption(name)
		default:
			unknown := sqlerr.Newf(sqlerr.UnsupportedExtension, "InnoDB: Unsupported compression algorithm '%s'",
				o.Value)
			return d.unfit(name, unknown, unknown)
		}
		setOption(d.t, attrOption+name, o.Value)
	case "ENCRYPTION":
		return Encryption(o.Value)
	case "TABLESPACE":
		switch strings.ToLower(o.Value) {
		case "innodb_file_per_table":
		case "innodb_system":
			d.keptOption(name)
		default:
			return sqlerr.New(sqlerr.TablespaceMissingWithName, o.Value)
		}
	case "DATA DIRECTORY":
		switch {
		case !strings.HasPrefix(o.Value, "/"):
			return sqlerr.New(sqlerr.WrongValue, "path", o.Value)
		case d.isNew:
			return sqlerr.Newf(sqlerr.WrongFileName, "The DATA DIRECTORY location must be in a known directory.")
		}
		d.warn(sqlerr.New(sqlerr.WarnOptionIgnored, "DATA DIRECTORY"))
	case "INDEX DIRECTORY":
		ignored := sqlerr.New(sqlerr.WarnOptionIgnored, "INDEX DIRECTORY")
		if d.isNew {
			return d.unfit(name, sqlerr.Newf(sqlerr.IllegalHACreateOption,
				"InnoDB: INDEX DIRECTORY is not supported"), ignored)
		}
		d.warn(ignored)
	case "ENGINE_ATTRIBUTE":
		return sqlerr.New(sqlerr.EngineAttributeNotSupported, "InnoDB")
	default:
		if o.Value != "DEFAULT" {
			d.keptOption(name)
		}
	}
	return nil
}

// Encryption checks the value of ENCRYPTION. Nothing that is written is encrypted, so 'Y' is what it is in a server
// that has no keyring.
func Encryption(value string) error {
	switch strings.ToUpper(value) {
	case "N":
		return nil
	case "Y":
		return sqlerr.New(sqlerr.CannotFindKeyInKeyring)
	}
	return sqlerr.New(sqlerr.InvalidEncryptionOption)
}

func (d *definer) keptOption(name string) { d.warn(KeptOnly("Table option " + name)) }

// unfit is for an option with a value that InnoDB does not take: an error with innodb_strict_mode, else a warning.
func (d *definer) unfit(option string, why, without *sqlerr.Error) error {
	if d.env.LaxOptions {
		d.warn(without)
		return nil
	}
	d.warn(why)
	if d.isNew {
		return sqlerr.New(sqlerr.IllegalHA, d.t.Name)
	}
	if option == "ROW_FORMAT" {
		option = "ROW_TYPE" // so MySQL calls it there
	}
	return sqlerr.New(sqlerr.IllegalHACreateOption, "InnoDB", option)
}

// rowFormat keeps ROW_FORMAT. Rows have one format, which is none of InnoDB's; DYNAMIC, what dumps have, asks for no
// other properties than it has.
func (d *definer) rowFormat(value string) error {
	switch value {
	case "DEFAULT":
		value = ""
	case "FIXED":
		return d.unfit("ROW_FORMAT",
			sqlerr.Newf(sqlerr.IllegalHACreateOption, "InnoDB: invalid ROW_FORMAT specifier."),
			sqlerr.Newf(sqlerr.IllegalHACreateOption, "InnoDB: assuming ROW_FORMAT=DYNAMIC."))
	case "COMPACT", "REDUNDANT", "COMPRESSED":
		d.warn(KeptOnly("ROW_FORMAT=" + value))
	}
	setOption(d.t, attrOption+"ROW_FORMAT", value)
	return nil
}

// checkPageSize looks at KEY_BLOCK_SIZE and the row format together, if the statement gives either: one that is not
// compressed has no such size.
func (d *definer) checkPageSize(opts []ast.TableOption) error {
	given := func(name string) bool {
		return slices.ContainsFunc(opts, func(o ast.TableOption) bool { return o.Name == name })
	}
	format, size := d.t.Options[attrOption+"ROW_FORMAT"], d.t.Options[attrOption+"KEY_BLOCK_SIZE"]
	switch {
	case size == "" || !given("KEY_BLOCK_SIZE") && !given("ROW_FORMAT"):
	case format != "" && format != "COMPRESSED":
		return d.unfit("KEY_BLOCK_SIZE",
			sqlerr.Newf(sqlerr.IllegalHACreateOption, "InnoDB: cannot specify ROW_FORMAT=%s with KEY_BLOCK_SIZE.",
				format),
			sqlerr.Newf(sqlerr.IllegalHACreateOption,
				"InnoDB: ignoring KEY_BLOCK_SIZE=%s unless ROW_FORMAT=COMPRESSED.", size))
	case given("KEY_BLOCK_SIZE"):
		d.keptOption("KEY_BLOCK_SIZE")
	}
	return nil
}

// orderRows is ORDER BY of ALTER TABLE: rows lie in the order of the primary key, or of their insertion.
func (a *alterer) orderRows() {
	if PrimaryKey(a.t) != nil {
		a.warn(sqlerr.Newf(sqlerr.UnknownError, "ORDER BY ignored as there is a user-defined clustered index in the "+
			"table '%s'", a.old.Name))
		return
	}
	a.warn(KeptOnly("ORDER BY of ALTER TABLE"))
}
