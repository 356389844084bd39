//go:build oracles

package oracle

// Kinds of values, by a letter:
//
//	n whole numbers   x numbers of any kind   s text   b bytes   d dates and times of day with them
//	t times of day    j JSON                  c truth  i small whole numbers
//
// and of literals that only some arguments may be:
//
//	p JSON path   r regular expression   f format of dates   l LIKE pattern   a any of the first
//
// What is not among the forms, and why:
//
//   - MD5, SHA1, SHA: MySQL 9.7 has them in a component, and without it says 1305.
//   - WEIGHT_STRING of what is no text: the sort keys of numbers are MySQL's own.
//   - GREATEST and LEAST of dates: MySQL 9.7.4 gives texts such as 16383-15-31, and DATEDIFF of them ends the server.
//     N and S are numbers and texts that no date gets among.
//   - Dates of numbers below 101 where days are counted, as DATEDIFF('x', 0.1) and WEEKDAY(0), which end it too; D are dates
//     and nothing else.
//   - CAST AS YEAR: an expression that is the year 0 is written 0 there, a column 0000.
//
// A form is a kind, a space, and text in which @k stands for an expression of a kind and
// {x|y} for one of the texts.
var forms = []string{
	// Operators.
	"x (@x {+|-|*} @x)", "x (@x / @x)", "n (@x DIV @x)", "x (@x {%|MOD} @x)", "x (- @x)", "n (@n {&|^} @n)", "n (@n | @n)",
	"n (@n {<<|>>} @i)", "n (~ @n)", "b (@b {&|^} @b)", "n (@d + 0)", "n (@t + 0)", "x (@a {+|-|*|/} @a)", "n (@a | @a)",
	"c (@a {=|<|<=|>|>=|<>|<=>} @a)", "c (@s {=|<|<=|>|>=|<>|<=>} @s)", "c (@x {=|<|>=|<=>} @x)", "c (@d {=|<|>=|<=>} @d)", "c (@t {=|<|>=|<=>} @t)",
	"c (@d {=|<|>=|<=>} @s)", "c (@t {=|<|>=|<=>} @s)", "c (@x {=|<|>=|<=>} @s)", "c (@j {=|<|>=|<=>} @a)", "c (@j {=|<|>=|<=>} @j)", "c (@d {=|<|>=|<=>} @x)", "c (@t {=|<|>=|<=>} @x)",
	"c (@t {=|<|>=|<=>} @d)",
	"c (@a BETWEEN @a AND @a)", "c (@d BETWEEN @d AND @s)", "c (@x NOT BETWEEN @x AND @x)", "c (@s BETWEEN @s AND @s)",
	"c (@a {IN|NOT IN} (@a, @a))", "c (@s IN (@s, @s, @s))", "c (@x IN (@x, @x, @s))", "c (@d IN (@d, @s))", "c (@a IN (@a))",
	"c (@a IS {NULL|NOT NULL})", "c (@c IS {TRUE|FALSE|UNKNOWN|NOT TRUE|NOT FALSE})", "c (NOT @a)", "c (! @c)", "c (@a {AND|OR|XOR} @a)",
	"c (@s {LIKE|NOT LIKE} @l)", "c (@a LIKE @l)", "c (@s LIKE @s ESCAPE '{|\\\\|a||}')", "c (@s {REGEXP|RLIKE|NOT REGEXP} @r)", "c (@s SOUNDS LIKE @s)",
	"c ((@a, @a) {=|<|<>|<=>|>=} (@a, @a))", "c ((@x, @s) IN ((@x, @s), (@x, @s)))", "a (CASE @a WHEN @a THEN @a WHEN @a THEN @a ELSE @a END)",
	"x (CASE WHEN @c THEN @x ELSE @x END)", "s (CASE WHEN @c THEN @s ELSE @x END)", "d (CASE WHEN @c THEN @d ELSE @d END)", "a (CASE WHEN @c THEN @a ELSE @a END)",
	"a IF(@c, @a, @a)", "x IF(@c, @x, @x)", "s IF(@a, @s, @s)", "a IFNULL(@a, @a)", "x IFNULL(@x, @x)", "s IFNULL(@s, @a)", "d IFNULL(@d, @d)", "a NULLIF(@a, @a)", "a COALESCE(@a, @a, @a)", "a COALESCE(@a)",
	"x {GREATEST|LEAST}(@N, @N, @N)", "s {GREATEST|LEAST}(@S, @S)", "s {GREATEST|LEAST}(@N, @S)",
	"c ISNULL(@a)", "n INTERVAL(@x, @x, @x)", "s (@s COLLATE {utf8mb4_bin|utf8mb4_0900_ai_ci|utf8mb4_general_ci|utf8mb4_0900_as_cs|latin1_swedish_ci})", "b BINARY @a", "b _binary @s",
	// Conversions.
	"n CAST(@a AS {SIGNED|UNSIGNED})", "x CAST(@a AS DECIMAL)", "x CAST(@a AS DECIMAL({5,2|65,30|20,0|1,1|30,10}))", "x CAST(@a AS {DOUBLE|FLOAT|REAL|FLOAT(20)|FLOAT(30)})",
	"s CAST(@a AS DATE)", "d CAST(@a AS DATETIME)", "d CAST(@a AS DATETIME({1|3|6}))", "t CAST(@a AS TIME)", "t CAST(@a AS TIME({1|3|6}))",
	"s CAST(@a AS CHAR)", "s CAST(@a AS CHAR({0|1|5|20}))", "s CAST(@a AS CHAR({5|30}) CHARACTER SET {latin1|ascii|utf8mb4|binary|utf8mb3})", "b CAST(@a AS BINARY)", "b CAST(@a AS BINARY({0|2|10}))",
	"j CAST(@a AS JSON)", "j CAST(@j AS JSON)", "s CAST(@a AS NCHAR(5))", "s CONVERT(@a USING {latin1|utf8mb4|ascii|binary|utf8mb3})", "x CONVERT(@a, {SIGNED|UNSIGNED|DECIMAL(10,3)|DOUBLE})", "s CONVERT(@a, {DATE|DATETIME(2)})",
	// Text.
	"n {ASCII|ORD|LENGTH|CHAR_LENGTH|BIT_LENGTH}(@s)", "n {ASCII|ORD|LENGTH|CHAR_LENGTH|BIT_LENGTH}(@a)", "s BIN(@x)", "s OCT(@x)", "s HEX(@x)", "s HEX(@s)", "s HEX(@a)", "b UNHEX(@s)", "b CHAR(@x, @i)", "s CHAR(@i, @n USING {utf8mb4|latin1})",
	"s CONCAT(@s, @s)", "s CONCAT(@a, @a)", "s CONCAT(@a)", "s CONCAT_WS(@s, @s, @a)", "s CONV(@a, @i, @i)", "s CONV(@s, {10|16|2|36|-10|-36}, {10|16|2|36|-10|-36})", "s ELT(@i, @s, @s, @a)", "s EXPORT_SET(@n, @s, @s, @s, @i)", "s EXPORT_SET(@i, @s, @s)",
	"n FIELD(@s, @s, @s)", "n FIELD(@a, @a, @a)", "n FIND_IN_SET(@s, @s)", "s FORMAT(@x, @i)", "s FORMAT(@x, @i, '{de_DE|en_US|de_CH|hi_IN|xx}')", "b FROM_BASE64(@s)", "b FROM_BASE64(TO_BASE64(@s))", "s TO_BASE64(@a)", "s INSERT(@s, @i, @i, @s)", "s INSERT(@a, @i, @i, @a)",
	"n INSTR(@s, @s)", "n LOCATE(@s, @s)", "n LOCATE(@s, @s, @i)", "n POSITION(@s IN @s)", "s {LEFT|RIGHT}(@s, @i)", "s {LEFT|RIGHT}(@a, @i)", "s {LOWER|UPPER}(@s)", "s {LOWER|UPPER}(@a)", "s {LPAD|RPAD}(@s, @i, @s)", "s {LPAD|RPAD}(@a, @i, @a)", "s {LTRIM|RTRIM|TRIM}(@s)", "s TRIM({BOTH|LEADING|TRAILING} @s FROM @s)",
	"s MAKE_SET(@n, @s, @s, @s)", "s QUOTE(@s)", "s QUOTE(@a)", "s REPEAT(@s, @i)", "s REPLACE(@s, @s, @s)", "s REVERSE(@s)", "s REVERSE(@a)", "s SOUNDEX(@s)", "s SPACE(@i)", "n STRCMP(@s, @s)", "n STRCMP(@a, @a)", "s SUBSTRING(@s, @i)", "s SUBSTRING(@s, @i, @i)", "s SUBSTRING(@a FROM @i FOR @i)", "s SUBSTRING_INDEX(@s, @s, @i)",
	"s CHARSET(@a)", "s COLLATION(@a)", "n COERCIBILITY(@a)",
	// Regular expressions.
	"c REGEXP_LIKE(@s, @r)", "c REGEXP_LIKE(@s, @r, '{c|i|in|m}')", "n REGEXP_INSTR(@s, @r)", "n REGEXP_INSTR(@s, @r, {1|2}, {1|2}, {0|1})", "s REGEXP_SUBSTR(@s, @r)", "s REGEXP_SUBSTR(@s, @r, 1, @i)", "s REGEXP_REPLACE(@s, @r, @s)", "s REGEXP_REPLACE(@s, @r, '<$0>', 1, @i)",
	// Numbers.
	"x ABS(@x)", "x ABS(@a)", "x {ACOS|ASIN|ATAN|COS|COT|DEGREES|EXP|LN|LOG10|LOG2|LOG|RADIANS|SIN|SQRT|TAN}(@x)", "x {ATAN|ATAN2|LOG|POW}(@x, @x)", "n {CEIL|FLOOR}(@x)", "n {CEIL|FLOOR}(@a)", "x ROUND(@x)", "x {ROUND|TRUNCATE}(@x, @i)", "x ROUND(@a)", "x {ROUND|TRUNCATE}(@a, @i)", "n SIGN(@x)", "n SIGN(@a)", "n CRC32(@a)", "n BIT_COUNT(@a)", "x MOD(@x, @x)",
	"s SHA2(@s, {0|224|256|384|512|1})", "s FORMAT_BYTES(@x)", "s FORMAT_PICO_TIME(@x)", "x RAND(@i)",
	// Dates.
	"d {ADDDATE|SUBDATE|DATE_ADD|DATE_SUB}(@d, INTERVAL @x {SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR|MICROSECOND})", "d DATE_ADD(@s, INTERVAL @x {SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR|MICROSECOND})", "t DATE_ADD(@t, INTERVAL @x {SECOND|MINUTE|HOUR|DAY|MICROSECOND})",
	"d DATE_ADD(@a, INTERVAL @a {SECOND|DAY|MONTH|YEAR|MICROSECOND})", "d DATE_ADD(@d, INTERVAL @v {SECOND_MICROSECOND|MINUTE_MICROSECOND|MINUTE_SECOND|HOUR_MICROSECOND|HOUR_SECOND|HOUR_MINUTE|DAY_MICROSECOND|DAY_SECOND|DAY_MINUTE|DAY_HOUR|YEAR_MONTH})", "d ADDDATE(@d, @i)", "d (@d {+|-} INTERVAL @i {DAY|SECOND|MONTH})",
	"t ADDTIME(@t, @t)", "d ADDTIME(@d, @t)", "d {ADDTIME|SUBTIME}(@s, @s)", "d {ADDTIME|SUBTIME}(@a, @a)", "d CONVERT_TZ(@d, '{+00:00|+05:30|-10:00|x}', '{+00:00|+02:00|-12:59}')", "d DATE(@D)", "s DATE(@s)", "s DATE(@a)", "n DATEDIFF(@D, @D)", "s DATE_FORMAT(@D, @f)", "s DATE_FORMAT(@S, @f)",
	"n {DAYOFMONTH|DAYOFWEEK|DAYOFYEAR|MONTH|QUARTER|WEEK|WEEKDAY|WEEKOFYEAR|YEAR|YEARWEEK|TO_DAYS|TO_SECONDS}(@D)", "n {DAYOFMONTH|DAYOFWEEK|DAYOFYEAR|MONTH|QUARTER|WEEK|WEEKDAY|WEEKOFYEAR|YEAR|YEARWEEK|TO_DAYS|TO_SECONDS}(@S)", "n {WEEK|YEARWEEK}(@D, @i)", "s {DAYNAME|MONTHNAME}(@D)", "s {DAYNAME|MONTHNAME}(@S)",
	"n {HOUR|MINUTE|SECOND|MICROSECOND|TIME_TO_SEC}(@t)", "n {HOUR|MINUTE|SECOND|MICROSECOND|TIME_TO_SEC}(@s)", "n {HOUR|MINUTE|SECOND|MICROSECOND|TIME_TO_SEC}(@a)", "n EXTRACT({YEAR|MONTH|DAY|HOUR|MINUTE|SECOND|MICROSECOND|QUARTER|WEEK|YEAR_MONTH|DAY_HOUR|DAY_MINUTE|DAY_SECOND|HOUR_MINUTE|HOUR_SECOND|MINUTE_SECOND|DAY_MICROSECOND|HOUR_MICROSECOND|MINUTE_MICROSECOND|SECOND_MICROSECOND} FROM @D)", "n EXTRACT({YEAR|DAY|HOUR|DAY_HOUR|DAY_SECOND|HOUR_SECOND|DAY_MICROSECOND} FROM @a)",
	"d FROM_DAYS(@x)", "d FROM_UNIXTIME(@x)", "s FROM_UNIXTIME(@x, @f)", "d FROM_UNIXTIME(@a)", "d LAST_DAY(@D)", "d LAST_DAY(@S)", "d MAKEDATE(@x, @i)", "t MAKETIME(@i, @i, @x)", "t MAKETIME(@a, @a, @a)", "n PERIOD_ADD(@n, @i)", "n PERIOD_DIFF(@n, @n)", "t SEC_TO_TIME(@x)", "t SEC_TO_TIME(@a)", "d STR_TO_DATE(@s, @f)", "d STR_TO_DATE(@a, @f)", "t TIME(@d)", "t TIME(@t)", "t TIME(@s)", "t TIME(@a)",
	"t TIMEDIFF(@t, @t)", "t TIMEDIFF(@d, @d)", "t TIMEDIFF(@s, @s)", "t TIMEDIFF(@a, @a)", "d TIMESTAMP(@d)", "d TIMESTAMP(@s)", "d TIMESTAMP(@a)", "d TIMESTAMP(@d, @t)", "d TIMESTAMP(@a, @a)", "d TIMESTAMPADD({SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR|MICROSECOND}, @x, @d)", "n TIMESTAMPDIFF({SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR|MICROSECOND}, @d, @d)", "n TIMESTAMPDIFF({SECOND|DAY|MONTH|YEAR}, @a, @a)", "s TIME_FORMAT(@t, @f)", "s TIME_FORMAT(@a, @f)", "x UNIX_TIMESTAMP(@d)", "x UNIX_TIMESTAMP(@a)", "d NOW({|3|6})", "d CURDATE()", "t CURTIME({|2})", "s GET_FORMAT({DATE|TIME|DATETIME}, '{EUR|USA|JIS|ISO|INTERNAL|x}')",
	// JSON.
	"j JSON_ARRAY(@a, @a)", "j JSON_OBJECT(@s, @a)", "j JSON_OBJECT('k', @a, 'l', @a)", "j JSON_ARRAY_APPEND(@j, @p, @a)", "j JSON_ARRAY_INSERT(@j, @p, @a)", "c JSON_CONTAINS(@j, @j)", "c JSON_CONTAINS(@j, @j, @p)", "c JSON_CONTAINS_PATH(@j, '{one|all|x}', @p, @p)", "n JSON_DEPTH(@j)", "j JSON_EXTRACT(@j, @p)", "j JSON_EXTRACT(@j, @p, @p)", "j JSON_INSERT(@j, @p, @a)", "j JSON_KEYS(@j)", "j JSON_KEYS(@j, @p)", "n JSON_LENGTH(@j)", "n JSON_LENGTH(@j, @p)",
	"j JSON_MERGE_PATCH(@j, @j)", "j JSON_MERGE_PRESERVE(@j, @j)", "c JSON_OVERLAPS(@j, @j)", "s JSON_PRETTY(@j)", "s JSON_QUOTE(@s)", "j JSON_REMOVE(@j, @p)", "j JSON_REPLACE(@j, @p, @a)", "j JSON_SEARCH(@j, '{one|all}', @l)", "j JSON_SEARCH(@j, 'all', @l, NULL, @p)", "j JSON_SET(@j, @p, @a)", "j JSON_SET(@j, @p, @j)", "s JSON_TYPE(@j)", "s JSON_TYPE(CAST(@a AS JSON))", "s JSON_UNQUOTE(@j)", "s JSON_UNQUOTE(@s)", "n JSON_VALID(@a)", "a JSON_VALUE(@j, @p)", "a JSON_VALUE(@j, @p RETURNING {SIGNED|UNSIGNED|DECIMAL(5,2)|CHAR(3)|DATE|DATETIME|TIME|DOUBLE|JSON|YEAR})", "c (@a MEMBER OF(@j))", "j JSON_EXTRACT(@s, @p)", "c JSON_CONTAINS(@s, @s)",
	"n JSON_STORAGE_SIZE(@j)", "j JSON_MERGE_PATCH(@s, @s)", "j COALESCE(@j, @j)", "j IF(@c, @j, @j)", "x (@j + 0)", "s CONCAT(@j)", "s (js->>@p)", "j (js->@p)",
	// Others.
	"n INET_ATON(@s)", "s INET_NTOA(@x)", "b INET6_ATON(@s)", "s INET6_NTOA(@b)", "c {IS_IPV4|IS_IPV6}(@s)", "c IS_UUID(@s)", "b UUID_TO_BIN(@s)", "s BIN_TO_UUID(@b)", "n UNCOMPRESSED_LENGTH(COMPRESS(@s))", "s UNCOMPRESS(COMPRESS(@s))", "a ANY_VALUE(@a)", "a NAME_CONST('x', {1|'a'|1.5})",
}

var literals = map[string][]string{
	"n": {"0", "1", "-1", "2", "3", "10", "12", "127", "128", "255", "-128", "32768", "8388607", "2147483647", "-2147483648", "4294967295", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "18446744073709551616", "20200229", "101", "991231", "691231", "700101", "20201231235959", "235959", "8385959", "8390000", "-8385959", "1012", "202002", "9912"},
	"i": {"0", "1", "-1", "2", "3", "4", "5", "7", "-2", "10", "16", "20", "30", "64", "-7", "100"},
	"x": {"0.0", "1.5", "-1.5", "0.5", "2.5", "-0.5", "99999.99999", "1.000", "123456789012345678901234567890.123456789", "0.000000000000000000000000000001", "1.005", "20200229.5", "101112.987654321", "20200229101112.9999999", "0e0", "1.5e0", "-2.5e0", "1e10", "1e20", "1.7976931348623157e308", "1e-300", "1e15", "123456789.123456789e0", "9.2233720368547758e18", "18446744073709551615e0", "1e-7", "0.1e0", "99999999999999999999999999999999999999999999999999999999999999999", "-99999999999999999.99", "1e0", "0.001", "59.9999999", "1e3"},
	"s": {"''", "' '", "'a'", "'A'", "'á'", "'ß'", "'ss'", "'abc'", "'a '", "'1'", "'1.5'", "'-1'", "'1e2'", "'1e400'", "'0x10'", "'abc1'", "'1abc'", "' 12'", "'12 '", "'日本'", "'😀'", "'a,b'", "'b'", "'B'", "'x y'", "'%'", "'_'", "'\\\\'", "'10'", "'aAbBcC'", "'e\u0301'", "'\\0'", "'a\\0b'", "'tab\\t'", "'18446744073709551616'", "'99999999999999999999999999'", "'.5'", "'5.'", "'+1'", "'--1'", "'1e'", "'127.0.0.1'", "'::1'", "'6ccd780c-baba-1026-9564-5b8c656024db'", "'YWJj'", "'4142'", "'null'", "'true'", "'[1, 2]'", "'{\"a\": 1}'", "'\"a\"'", "_latin1'\\xe9'", "_utf8mb4'A' COLLATE utf8mb4_bin", "'a' COLLATE utf8mb4_0900_as_cs", "N'a'", "'-0'", "'1 2'", "'ǅ'", "'İ'", "'ﬀ'"},
	"b": {"x''", "x'61'", "x'FF'", "0x31", "0x4142", "b'1'", "b'01100001'", "_binary'a'", "x'00'", "x'E9'", "0xFFFFFFFFFFFFFFFF", "x'0102030405060708090A0B0C0D0E0F10'", "b'0'", "x'7F000001'"},
	"d": {"DATE'2020-02-29'", "DATE'1999-12-31'", "DATE'9999-12-31'", "DATE'1000-01-01'", "DATE'0001-01-01'", "TIMESTAMP'2020-02-29 10:11:12'", "TIMESTAMP'2020-12-31 23:59:59.999999'", "TIMESTAMP'2020-12-31 23:59:59.5'", "TIMESTAMP'9999-12-31 23:59:59.999999'", "TIMESTAMP'1970-01-01 00:00:00'", "TIMESTAMP'2038-01-19 03:14:08'", "TIMESTAMP'0001-01-01 00:00:00.000001'",
		"'2020-02-29'", "'2020-02-30'", "'2020-13-01'", "'0000-00-00'", "'2020-00-00'", "'2020-01-00'", "'20-2-29'", "'70-1-1'", "'69-1-1'", "'20200229'", "'200229101112'", "'2020-02-29 10:11:12.999999'", "'2020-02-29 10:11:12.9999996'", "'2020-02-29T10:11:12'", "'2020-02-29 24:00:00'", "'2020-02-29 10:11:12+02:00'", "'9999-12-31 23:59:59.9999999'", "'2020.02.29'", "'2020-02-29 10'", "'2020-02-29 10:11'", "'2020-2-9 1:2:3'", "'0000-01-01'", "'2020-02-29x'", "20200229", "20200229101112", "0", "'1:1:1'", "'10-11-12 13:14:15'", "'0000-00-00 00:00:01'"},
	"t": {"TIME'10:11:12'", "TIME'-10:11:12'", "TIME'838:59:59'", "TIME'-838:59:59'", "TIME'00:00:00.000001'", "TIME'25:00:00.5'", "TIME'-00:00:01.5'", "TIME'0:0:0'", "'10:11:12'", "'-10:11:12'", "'838:59:59'", "'839:00:00'", "'-839:0:0'", "'1 10:11:12'", "'10:11:12.987654321'", "'10:11'", "'1011'", "'101112'", "'10:61:00'", "'10:11:12.5'", "'34 22:59:59'", "'35 0:0:0'", "'-1 1:1:1.1'", "'10'", "101112", "8385959", "8390000", "101112.5", "-101112", "'00:00:00'", "'10:11:12x'", "'12:30:45.9999996'"},
	"j": {"CAST('null' AS JSON)", "CAST('1' AS JSON)", "CAST('-1.5' AS JSON)", "CAST('1e30' AS JSON)", "CAST('18446744073709551615' AS JSON)", "CAST('true' AS JSON)", "CAST('\"a\"' AS JSON)", "CAST('\"\"' AS JSON)", "CAST('[]' AS JSON)", "CAST('{}' AS JSON)", "CAST('[1, 2, [3, \"a\"]]' AS JSON)", "CAST('{\"a\": 1, \"b\": [1, {\"a\": null}]}' AS JSON)", "CAST('{\"a\": {\"b\": \"x\"}}' AS JSON)", "CAST('[1, 1.0, \"1\", true, null]' AS JSON)", "JSON_ARRAY(1, 'a', NULL)", "JSON_OBJECT('a', 1.50)", "CAST(DATE'2020-02-29' AS JSON)", "CAST(TIME'10:11:12.5' AS JSON)", "CAST(1.50 AS JSON)", "CAST('\"2020-02-29\"' AS JSON)", "CAST('\"12\"' AS JSON)", "'[1, 2]'", "'{\"a\": [1, 2], \"b\": \"x\"}'", "'1'", "'\"a\"'", "'[1'", "'x'", "CAST(x'FF' AS JSON)", "CAST(TIMESTAMP'2020-02-29 10:11:12' AS JSON)"},
	"c": {"TRUE", "FALSE", "NULL"},
	"p": {"'$'", "'$.a'", "'$.b'", "'$[0]'", "'$[1]'", "'$[last]'", "'$[last-1]'", "'$[0 to 1]'", "'$.*'", "'$[*]'", "'$**.a'", "'$.b[1].a'", "'$[2][1]'", "'$.a.b'", "'$.\"a\"'", "'$[5]'", "'a'", "'$.'", "'$**'", "NULL", "' $ . a '", "'$.c'"},
	"r": {"'a'", "'^a'", "'[a-c]+'", "'b$'", "'.'", "'(a)(b)'", "'a|b'", "''", "'['", "'\\\\d+'", "'[[:alpha:]]'", "'é'", "'A'", "NULL", "'x*'", "'(?i)AB'"},
	"f": {"'%Y-%m-%d'", "'%Y-%m-%d %H:%i:%s'", "'%d.%m.%y'", "'%H:%i:%s.%f'", "'%T'", "'%r'", "'%j'", "'%M %D %W'", "'%a %b %c %e'", "'%U %u %V %v %X %x'", "'%h %I %k %l %p'", "'%%%z'", "'%w'", "''", "'%Y%m%d'", "'%H%i'", "NULL", "'%y-%c-%e'", "'%X-%V-%W'", "'x%Y'", "'%S'", "'%Y-%j'"},
	"l": {"'a%'", "'%b%'", "'_'", "'A_c'", "''", "'%'", "'á%'", "'\\\\%'", "'1%'", "'%0%'", "'ss'", "'%-%'", "'2020%'", "'a '", "NULL"},
	"v": {"'1:1'", "'-1 2:3:4.5'", "'1-2'", "'1.5'", "1.5", "'1 2 3 4 5'", "-1", "'x'", "''", "NULL", "'10:20'", "1", "'1,2'", "'-1:-1'", "'99999999999:1'", "1.05", "'1.000005'"},
}

// The columns of all tables; the letter is the kind.
var mysqlColumns = []struct{ name, kind, decl string }{
	{"ti", "n", "TINYINT"}, {"tu", "n", "TINYINT UNSIGNED"}, {"si", "n", "SMALLINT"}, {"mi", "n", "MEDIUMINT"}, {"i", "n", "INT"}, {"iu", "n", "INT UNSIGNED"}, {"bi", "n", "BIGINT"}, {"bu", "n", "BIGINT UNSIGNED"}, {"zf", "n", "INT(6) ZEROFILL"}, {"nn", "i", "INT NOT NULL DEFAULT 7"},
	{"d0", "x", "DECIMAL(10,0)"}, {"d1", "x", "DECIMAL(10,3)"}, {"d2", "x", "DECIMAL(65,30)"}, {"du", "x", "DECIMAL(20,4) UNSIGNED"}, {"fl", "x", "FLOAT"}, {"db", "x", "DOUBLE"}, {"dn", "x", "DOUBLE NOT NULL DEFAULT 1.5"},
	{"b1", "b", "BIT(1)"}, {"b10", "b", "BIT(10)"}, {"b64", "b", "BIT(64)"}, {"y", "n", "YEAR"},
	{"dt", "d", "DATE"}, {"tm", "t", "TIME"}, {"tm6", "t", "TIME(6)"}, {"dm", "d", "DATETIME"}, {"dm3", "d", "DATETIME(3)"}, {"dm6", "d", "DATETIME(6)"}, {"ts", "d", "TIMESTAMP NULL"}, {"ts6", "d", "TIMESTAMP(6) NULL"}, {"dmn", "d", "DATETIME NOT NULL DEFAULT '2020-01-01'"},
	{"ch", "s", "CHAR(10)"}, {"vc", "s", "VARCHAR(60)"}, {"vas", "s", "VARCHAR(60) COLLATE utf8mb4_0900_as_cs"}, {"vbn", "s", "VARCHAR(60) COLLATE utf8mb4_bin"}, {"vgc", "s", "VARCHAR(60) COLLATE utf8mb4_general_ci"}, {"vl", "s", "VARCHAR(60) CHARACTER SET latin1"}, {"vn", "s", "VARCHAR(60) NOT NULL DEFAULT 'v'"}, {"tx", "s", "TEXT"},
	{"bn", "b", "BINARY(4)"}, {"vb", "b", "VARBINARY(60)"}, {"bl", "b", "BLOB"},
	{"en", "s", "ENUM('a','B','x y','10','é','')"}, {"st", "s", "SET('a','b','c','10')"}, {"js", "j", "JSON"},
}

var mysqlIndexes = []string{"KEY (i)", "KEY (bu)", "KEY (d1, i)", "KEY (d2)", "KEY (db)", "KEY (fl)", "KEY (b10)", "KEY (y)", "KEY (dt)", "KEY (tm6)", "KEY (dm3)", "KEY (dm)", "KEY (ts6)", "KEY (ch)", "KEY (vc)", "KEY (vas)", "KEY (vbn(3))", "KEY (vgc, i)", "KEY (vl)", "KEY (tx(5))", "KEY (bn)", "KEY (vb)", "KEY (en)", "KEY (st)", "KEY (nn, vn)", "KEY (dmn)", "KEY (ti DESC)", "KEY (bl(4))"}
