package ast

import (
	"bytes"
	"slices"
	"strings"
)

// digestInput is how much of a text its digest looks at.
const digestInput = 16 << 10

// AppendDigest appends what statements have in common that differ in their values only, as
// MySQL's DIGEST_TEXT: ? for each literal, ... for lists of them, one row for many, keywords in
// upper case, names in backquotes, no comments, one space. At most max bytes are added, and
// what is cut off ends in three points. Nothing is allocated once dst has grown.
func AppendDigest(dst []byte, sql string, mode Mode, max int) []byte {
	whole := len(sql) <= digestInput
	if !whole {
		sql = sql[:digestInput]
	}
	d := digester{lexer: lexer{s: sql, mode: mode}, b: dst, from: len(dst), operand: false}
	for d.token() {
		// A list of rows may be long until it is one row: what is cut off is what would remain.
		if len(d.b)-d.from > 2*max+digestInput/4 {
			whole = false
			break
		}
	}
	b := d.b
	if !whole {
		// Where in a row the text was cut is not to matter.
		if i := bytes.LastIndex(b[d.from:], rowsMark); i >= 0 {
			b = b[:d.from+i+len(rowsMark)]
		}
		b = append(b, " ..."...)
	}
	if len(b)-d.from > max {
		n := d.from + max - 3
		for n > d.from && b[n]&0xc0 == 0x80 {
			n--
		}
		b = append(b[:n], "..."...)
	}
	return b
}

// digester writes the digest of a text.
type digester struct {
	lexer
	b       []byte
	from    int
	operand bool // the token before is an operand: a sign after it is an operator
	sign    int  // where a sign that may belong to a literal begins in b, plus one
	name    bool // a point came before: a name follows
	naming  bool // a word came before after which a bracket does not make a function of a name
}

var (
	rowsMark   = []byte(" /* , ... */")
	twoValues  = []byte("? , ?")
	moreValues = []byte("... , ?")
)

// token adds the next token. It returns false at the end.
func (d *digester) token() bool {
	t := d.next()
	sign := d.sign
	d.sign = 0
	switch t.kind {
	case tEOF, tBad:
		return false
	case tComment, tHint, tVersion, tVersionEnd:
		d.sign = sign
	case tString, tNString, tInt, tDecimal, tDouble, tHex, tBit, tParam:
		if sign != 0 {
			d.b = d.b[:sign-1]
		}
		d.literal()
	case tWord:
		d.word(d.s[t.start:t.end], t.end)
	case tQuoted:
		d.space()
		d.quote(d.s[t.start+1:t.end-1], d.s[t.start])
		d.operand, d.name = true, false
	case tUserVar, tSysVar:
		d.add(d.s[t.start:t.end])
		d.operand = true
	default:
		return d.op(d.s[t.start:t.end])
	}
	return true
}

// space parts tokens.
func (d *digester) space() {
	if n := len(d.b); n > d.from && !d.name && d.b[n-1] != ' ' {
		d.b = append(d.b, ' ')
	}
}

func (d *digester) add(text string) {
	d.space()
	d.b = append(d.b, text...)
	d.name = false
}

// quote adds a name in backquotes; quotes within it are doubled already where they need be.
func (d *digester) quote(name string, by byte) {
	d.b = append(d.b, '`')
	if by == '`' || strings.IndexByte(name, '`') < 0 {
		d.b = append(d.b, name...)
	} else {
		for i := range len(name) {
			if name[i] == '`' {
				d.b = append(d.b, '`')
			}
			d.b = append(d.b, name[i])
		}
	}
	d.b = append(d.b, '`')
}

// literal adds a value, or makes the list longer that it stands in.
func (d *digester) literal() {
	d.add("?")
	d.operand = true
	for _, list := range [][]byte{twoValues, moreValues} {
		if bytes.HasSuffix(d.b[d.from:], list) {
			d.b = append(d.b[:len(d.b)-len(list)], "..."...)
		}
	}
}

func (d *digester) word(w string, end int) {
	naming := d.naming
	d.operand, d.naming = true, false
	class := digestWords.find(w)
	switch {
	case d.name:
		d.quote(w, '`')
		d.name = false
	case class != classNone:
		d.upper(w)
		d.operand, d.naming = false, class == classClause
	case w[0] == '_' && d.at(d.run(end, cSpace)) == '\'': // an introducer is part of its literal
		d.operand = false
	case d.at(d.run(end, cSpace)) == '(' && !naming:
		d.upper(w)
	default:
		d.space()
		d.quote(w, '`')
	}
}

// upper adds a word in upper case.
func (d *digester) upper(w string) {
	d.space()
	for i := range len(w) {
		c := w[i]
		if c >= 'a' && c <= 'z' {
			c -= 32
		}
		d.b = append(d.b, c)
	}
}

func (d *digester) op(text string) bool {
	switch text {
	case ";":
		return false
	case ".":
		d.b = append(d.b, '.')
		d.name = true
		return true
	case "(", ",":
		d.add(text)
		d.operand = false
	case ")":
		d.close()
		d.operand = true
	case "-", "+":
		at := len(d.b)
		d.add(text)
		if !d.operand {
			d.sign = at + 1
		}
		d.operand = false
	default:
		d.add(text)
		d.operand = false
	}
	return true
}

// close ends a bracket. A list of values is one value; rows of them are one row.
func (d *digester) close() {
	one, many := bytes.HasSuffix(d.b[d.from:], []byte("( ?")), bytes.HasSuffix(d.b[d.from:], []byte("( ..."))
	if !one && !many {
		d.add(")")
		return
	}
	if one {
		d.b = append(d.b[:len(d.b)-len(" ?")], "?)"...)
	} else {
		d.b = append(d.b[:len(d.b)-len(" ...")], "...)"...)
	}
	row := "(?)"
	if many {
		row = "(...)"
	}
	before := d.b[d.from : len(d.b)-len(row)]
	if bytes.HasSuffix(before, []byte(" IN ")) {
		d.b = append(d.b[:len(d.b)-len(row)], "(...)"...)
		return
	}
	rest, ok := bytes.CutSuffix(before, []byte(" , "))
	if !ok {
		return
	}
	switch {
	case bytes.HasSuffix(rest, rowsMark) && bytes.HasSuffix(rest[:len(rest)-len(rowsMark)], []byte(row)):
		d.b = d.b[:d.from+len(rest)]
	case bytes.HasSuffix(rest, []byte(row)):
		d.b = append(d.b[:d.from+len(rest)], rowsMark...)
	}
}

// digestWords are the words that a digest has in upper case and without quotes: those that are
// reserved, and others that statements begin with or are made of.
var digestWords = func() *wordTable {
	naming := strings.Fields(namingWords)
	others := slices.DeleteFunc(strings.Fields(ReservedWords+" "+otherWords), func(w string) bool { return slices.Contains(naming, w) })
	return newWordTable(map[wordClass][]string{classSelect: others, classClause: naming})
}()

// namingWords are those after which a table or the like is named, perhaps with a list of columns.
const namingWords = `INTO TABLE INSERT REPLACE EXISTS INDEX KEY ON VIEW AS WITH REFERENCES CONSTRAINT UNIQUE RECURSIVE`

const otherWords = `BEGIN COMMIT ROLLBACK START TRANSACTION SAVEPOINT WORK CHAIN OFFSET NAMES GLOBAL SESSION LOCAL VARIABLES TABLES STATUS COLUMNS FULL
VALUE TRUNCATE EXECUTE PREPARE DEALLOCATE DO END USER ROLE ENGINE TEMPORARY VIEW ISOLATION LEVEL COMMITTED UNCOMMITTED REPEATABLE SERIALIZABLE ONLY
SNAPSHOT CONSISTENT PROCESSLIST WARNINGS ERRORS FLUSH HANDLER HELP AUTO_INCREMENT COMMENT MODIFY QUERY CONNECTION NOWAIT SKIP LOCKED SHARE IDENTIFIED
ANY SOME TRUNCATE QUICK DUPLICATE ESCAPE ROLLUP UNKNOWN DATE TIME TIMESTAMP DATETIME YEAR MONTH DAY HOUR MINUTE SECOND MICROSECOND WEEK QUARTER`

// ReservedWords are MySQL's reserved words, parted by spaces.
const ReservedWords = `ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE CASE CHANGE CHAR
CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT CREATE CROSS CUBE CUME_DIST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
CURRENT_USER CURSOR DATABASE DATABASES DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC
DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF EMPTY ENCLOSED ESCAPED EXCEPT EXISTS EXIT EXPLAIN FALSE FETCH
FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT GROUP GROUPING GROUPS HAVING HIGH_PRIORITY
HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT
INTERVAL INTO IO_AFTER_GTIDS IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING LEAVE LEFT LIKE LIMIT
LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY MASTER_BIND MASTER_SSL_VERIFY_SERVER_CERT MATCH MAXVALUE
MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL NUMERIC
OF ON OPTIMIZE OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARTITION PERCENT_RANK PRECISION PRIMARY PROCEDURE PURGE RANGE RANK
READ READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS
ROW_NUMBER SCHEMA SCHEMAS SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL SQLEXCEPTION SQLSTATE
SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL STARTING STORED STRAIGHT_JOIN SYSTEM TABLE TERMINATED THEN TINYBLOB TINYINT
TINYTEXT TO TRAILING TRIGGER TRUE UNDO UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR
VARCHARACTER VARYING VIRTUAL WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL`
