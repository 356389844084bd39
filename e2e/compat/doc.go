// Package compat runs the test suites of drivers and frameworks, as their authors wrote them, against a server: that of the Go driver, of
// SQLAlchemy's dialect and of Django. Its tests have the build tag compat; `make compat` fetches the suites and runs them, which takes the
// better part of an hour. What is known to fail is listed with its reason in testdata, one file for each suite: anything else that fails is an
// error, and docs/compatibility.md has the results.
package compat
