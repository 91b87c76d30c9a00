package model

// Each constant is the bit of one field of a run. The table RunFields has the fields in the
// same order.
const (
	RunStateBit uint64 = 1 << iota
	RunDoneBit
	RunLiveBit
	RunBegunBit
	RunFinishedBit
	RunOutputsBit
	RunIDBit
	RunNameBit
	RunKeyBit
	RunVarsBit
	RunTriggerBit
	RunStartedByBit
	RunWorkflowBit
	RunStepsBit
	RunOwnerBit
	RunStartedBit
	RunDeadlineBit
	RunPhaseBit
	RunPausedBit
	RunParkedBit
	RunParkedAtBit
	RunPassedBit
	RunTurningBit
	RunCancelBit
	RunNoUndoBit
	RunOverdueBit
	RunFailureBit
	RunUndoStartedBit
	RunUndoDeadlineBit
	RunUndoExpiredBit
	RunStuckBit
	RunUndonePastBit
	RunUndoneBit
	RunLeftBit
	RunUndeclaredBit
	RunHoldsBit
	RunRefusedBit
	RunPauseBit
	RunLostBit
	RunWaitsBit
	RunParentBit
	RunLineBit
	RunAwaitsBit
	RunMovesBit
	RunStartByBit
	RunAncestorsBit
	RunReplyBit
	RunBoundBit
)

// Each constant is the bit of one field of a node. The table NodeFields has the fields in the
// same order.
const (
	NodeStateBit uint64 = 1 << iota
	NodeFwdActBit
	NodeDoubtBit
	NodeDoneBit
	NodeCallsBit
	NodeFwdAttemptBit
	NodeFwdTotalBit
	NodeDepsBit
	NodeFwdKindBit
	NodeFwdReadyBit
	NodeFwdBeganBit
	NodeFwdEndedBit
	NodeInputBit
	NodePreparedBit
	NodeOutputBit
	NodeKnownBit
	NodeFwdDeadlineBit
	NodeFwdUntilBit
	NodeFwdFailuresBit
	NodeFwdFailureBit
	NodeInstanceBit
	NodeNextBit
	NodeActiveBit
	NodeOverBit
	NodeBadBit
	NodePastBit
	NodeUndoBit
	NodeUndActBit
	NodeBackBit
	NodeUndKindBit
	NodeUndAttemptBit
	NodeUndTotalBit
	NodeUndoInputBit
	NodeUndoReadyBit
	NodeUndBeganBit
	NodeUndEndedBit
	NodeUndReadyBit
	NodeUndDeadlineBit
	NodeMayWorkUntilBit
	NodeQueueBit
	NodeUndUntilBit
	NodeUndFailuresBit
	NodeUndFailureBit
	NodeUndoDoubtBit
	NodeExpansionBit
	NodeFwdRoundsBit
	NodeFwdLookupsBit
	NodeUndLookupsBit
	NodeCaughtBit
	NodeTimedOutBit
	NodeBizKeyBit
	NodeGenBit
	NodeCheckpointBit
	NodeManualBit
	NodeFwdRestBit
	NodeUndRestBit
	NodeClearingBit
	NodeUndoCheckpointBit
	NodeStatedBit
	NodeSignalBit
	NodeDataBit
	NodeLoopBit
	NodeGatheredBit
	// The mask of a node has 64 bits, so NodeChildBit is the last bit. A further field of a node
	// must share the bit of an existing field.
	NodeChildBit
)

// Each constant is the bit of one field of an attempt. The table AttemptFields has the fields
// in the same order.
const (
	AttemptStatusBit uint64 = 1 << iota
	AttemptEndedBit
	AttemptKindBit
	AttemptNumberBit
	AttemptStartedBit
	AttemptCompleteByBit
	AttemptCodeBit
	AttemptMessageBit
	AttemptSilentBit
	AttemptGenBit
)
