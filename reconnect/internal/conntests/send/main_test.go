package send_test

import (
	"testing"

	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

func TestMain(m *testing.M) { scene.Main(m) }
