package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ratelog"
	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// failureInterval is the least time between two lines about requests that failed: programs ask every few
// seconds.
const failureInterval = time.Minute

// failureLog logs why a request could not be answered.
type failureLog struct{ logger *slog.Logger }

func newFailureLog(log *slog.Logger) failureLog {
	return failureLog{ratelog.New(log, failureInterval, "")}
}

// Println logs an error of promhttp. It is no failure if the client has left.
func (l *failureLog) Println(said ...any) {
	if !slices.ContainsFunc(said, isLeft) {
		l.logger.Error("a request to the http address was not answered", "error", fmt.Sprint(said...))
	}
}

// isLeft says whether it is an error of writing to who asked.
func isLeft(said any) bool {
	err, _ := said.(error)
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "write"
}

// answerJSON answers with a value whole, or with why it can't be written: what is short of
// its end, or empty, would be taken for all there is.
func (l *failureLog) answerJSON(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		err = fmt.Errorf("encode status: %w; it is a defect: please report it", err)
		l.Println(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(shown.JSON(text), '\n')) // an error means that who asked has left
}
