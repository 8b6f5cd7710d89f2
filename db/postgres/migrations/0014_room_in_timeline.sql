ALTER INDEX "timeline_once" SET (fillfactor = 70);
