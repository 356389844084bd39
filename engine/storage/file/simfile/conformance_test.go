package simfile_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/filetest"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

func TestConformance(t *testing.T) {
	filetest.Run(t, func(*testing.T) file.FS { return simfile.New(env.Real(), 1) })
}

// The images of a file system conform as well.
func TestConformanceOfImages(t *testing.T) {
	filetest.Run(t, func(*testing.T) file.FS { return simfile.New(env.Real(), 1).CrashImage() })
	filetest.Run(t, func(*testing.T) file.FS { return simfile.New(env.Real(), 1).KillImage() })
}
