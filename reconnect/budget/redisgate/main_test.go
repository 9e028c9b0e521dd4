package redisgate_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// With childEnv or loginsEnv set, the test binary is one process of a fleet instead.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(loginsEnv) != "":
		runLogins()
		return
	case os.Getenv(childEnv) != "":
		runChild()
		return
	}
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}
