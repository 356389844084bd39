package simfile_test

import (
	"fmt"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// A power failure after an unsynced write, found by the seed once, is found again.
func Example() {
	sim := simenv.New(42) // one seed decides schedule, clock and faults
	disk := simfile.New(sim, 42)
	sim.Run(func() {
		f, _ := disk.Open("f", file.OpenOptions{Create: true})
		f.WriteAt([]byte("kept"), 0)
		f.Sync()
		disk.SyncDir(".") // a file's name needs its own sync
		f.WriteAt([]byte("lost"), 0)
		seen := map[string]int{}
		for range 100 {
			after := disk.CrashImage()
			g, _ := after.Open("f", file.OpenOptions{ReadOnly: true})
			p := make([]byte, 4)
			g.ReadAt(p, 0)
			seen[string(p)]++
		}
		fmt.Println(len(seen), seen["kept"] > 0, seen["lost"] > 0)
	})
	// Output: 2 true true
}
