package scene

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main is the TestMain of each area. It checks that no goroutine is left when the tests have ended (promise 11).
func Main(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Unsetenv(name) // the tests must not use the proxy of this machine
	}
	goleak.VerifyTestMain(m)
}
