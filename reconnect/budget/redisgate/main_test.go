package redisgate_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// With childEnv set, the test binary is one process of the fleet instead.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}
