module github.com/triremedb/trireme/e2e/console

go 1.26.0

replace github.com/triremedb/trireme => ../../

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/triremedb/trireme v0.0.0-00010101000000-000000000000
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
