package ratelog_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/logging/ratelog"
)

// A kind is a message and the value of the key attribute. Each kind is written once per interval, with the number of
// suppressed records.
func TestNew_OneLineOfAKindPerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := ratelog.New(slog.New(slog.NewTextHandler(&out, nil)), 10*time.Second, "reason")
		for range 25 {
			log.Warn("closed", "reason", "slow")
			log.With("pid", 7).Warn("closed", "reason", "large")
			log.Warn("refused")
			time.Sleep(time.Second)
		}
		for text, want := range map[string]int{
			"msg=closed reason=slow": 3, "msg=closed pid=7 reason=large": 3, "msg=refused": 3,
			"suppressed=9": 6,
		} {
			if got := strings.Count(out.String(), text); got != want {
				t.Errorf("%q is there %d times, want %d:\n%s", text, got, want, out.String())
			}
		}
	})
}

func TestNew_LevelsOfTheHandlerBehindHold(t *testing.T) {
	var out bytes.Buffer
	log := ratelog.New(slog.New(slog.NewTextHandler(&out, nil)), time.Hour, "")
	log.Debug("seldom")
	log.Info("seldom")
	if got := strings.Count(out.String(), "seldom"); got != 1 {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
}
