package dialer

import (
	"io"
	"log"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The tests must not use the proxy of the environment. It is read once, at the first use.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if os.Getenv(inChild) == "" {
			os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// inChild is set where a test runs itself in a process of its own.
const inChild = "REDIAL_TEST_CHILD"

// silent is for servers whose clients fail on purpose.
var silent = log.New(io.Discard, "", 0)
