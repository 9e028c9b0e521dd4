package conn

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(pusherVar) != "" {
		pusher()
		return
	}
	goleak.VerifyTestMain(m)
}

// RaceEnabled reports whether the test was built with -race, under which a
// sync.Pool forgets a part of what it is given.
func RaceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
