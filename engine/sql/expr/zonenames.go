package expr

import (
	_ "embed"
	"strings"
)

//go:embed zonenames.txt
var zoneNames string

// ZoneNames lists the names of the zone database that LoadZone knows, in order.
func ZoneNames() []string {
	var list []string
	for _, name := range strings.Fields(zoneNames) {
		if _, ok := LoadZone(name); ok {
			list = append(list, name)
		}
	}
	return list
}
