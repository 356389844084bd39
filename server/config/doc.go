// Package config is how a node is told what to do: settings from flags, the environment
// and a file, checked and documented in one table.
//
//	c, err := config.Load(config.Sources{Args: os.Args[1:], Env: os.Environ()})
//	dir := c.String("datadir")
//
// A setting's value comes from the first of: a flag (--max-connections=100), the
// environment (TRIREME_MAX_CONNECTIONS=100), the file that --config names, the default.
// Names are MySQL's where MySQL has the concept; '-' and '_' are the same, upper and lower
// case too.
//
// The file has a line "name = value" for each setting, comments that begin with # or ;,
// and sections as MySQL's option files: lines under [trireme], [mysqld] or [server], or
// under none, count, those of other sections do not.
//
// A name that is no setting of the node is taken for a global variable of sessions
// (sql_mode, wait_timeout, …), which Sources.Variable checks. Nothing unknown passes.
package config
