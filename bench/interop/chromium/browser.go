package chromium

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// These bound the waits of the package. They are generous, because a test that passes never
// comes near them, and a test machine may be very slow.
const (
	Limit    = time.Minute // for one command, and for the start of the program
	Patience = time.Minute // for a condition
)

// Browser is a Chromium that runs. Its methods may be called from one goroutine at a time.
type Browser struct {
	ctx context.Context // that of chromedp, which has the browser and a first, empty tab
}

// Find returns the path of the program: the environment variable CHROMIUM, or chromium,
// chromium-browser or google-chrome in the PATH. It returns "" if there is none.
func Find() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Start starts a Chromium and returns when it answers. Where there is none it skips the test.
// The flags are given besides the usual ones, without the dashes, such as
// "enable-features=Name". The cleanup of t ends the program and waits for it.
func Start(t testing.TB, flags ...string) *Browser {
	t.Helper()
	path := Find()
	if path == "" {
		t.Skip("there is no chromium")
	}
	// Of the usual flags of chromedp none is used: they also turn off what is to be tested,
	// the throttling of hidden tabs.
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile(t)),
		chromedp.WSURLReadTimeout(Limit),
		chromedp.WindowSize(1280, 900),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
	}
	// Without these the program looks for Google's hosts at its start. The last one keeps its
	// shared memory out of /dev/shm, which is small in a container.
	for _, name := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage",
	} {
		options = append(options, chromedp.Flag(name, true))
	}
	for _, f := range flags {
		options = append(options, flag(f))
	}
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(free) // it waits until the process is gone
	t.Cleanup(end)
	b := &Browser{ctx: ctx}
	t.Cleanup(b.close)
	require.NoError(t, chromedp.Do(ctx), "chromium does not start")
	return b
}

// profile returns an empty directory, which the cleanup of t removes. It tries again while that
// fails, because a child of the program may write a last file after the program is gone.
func profile(t testing.TB) string {
	dir, err := os.MkdirTemp("", "chromium-")
	require.NoError(t, err)
	t.Cleanup(func() {
		err := os.RemoveAll(dir)
		for deadline := time.Now().Add(Patience); err != nil && time.Now().Before(deadline); err = os.RemoveAll(dir) {
			time.Sleep(50 * time.Millisecond)
		}
		require.NoError(t, err)
	})
	return dir
}

// close asks the program to end, so that it does so in order, and gives it Limit.
func (b *Browser) close() {
	ctx, cancel := context.WithTimeout(b.ctx, Limit)
	defer cancel()
	_ = chromedp.Cancel(ctx) // what has not ended by then is killed
}

// flag returns the option of a flag that is written as name or name=value.
func flag(text string) chromedp.ExecAllocatorOption {
	if name, value, ok := strings.Cut(text, "="); ok {
		return chromedp.Flag(name, value)
	}
	return chromedp.Flag(text, true)
}
