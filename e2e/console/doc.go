// Package console tries the web console in a real browser (Debian's chromium), against a group of
// real processes. It is a module of its own, for the server's sake: what drives the browser has
// many dependencies.
//
//	make test-console
//	go -C e2e/console test . -args -shots=/tmp/shots   # pictures of the views, to look at
package console
