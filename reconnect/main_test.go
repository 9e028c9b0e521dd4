package reconnect_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Promise 11, for every test of the package.
func TestMain(m *testing.M) {
	if os.Getenv(peerEnv) != "" {
		servePeer()
		return
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Unsetenv(name) // the proxy of whoever runs the tests is not meant
	}
	goleak.VerifyTestMain(m)
}
