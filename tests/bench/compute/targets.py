"""What training is measured against: ratios to PyTorch at each mini-batch, on one
thread and, where they hold or grow, on two; of best against best; and the useful
share of the peak at our best."""


class Targets:
    def __init__(self, ratios=None, best=None, share=None):
        self.ratios, self.best, self.share = ratios or {}, best, share


NONE = Targets()
TRAINING = {
    'mnist': Targets({1: 4, 4: 2.8, 16: 2, 64: 1.8}, 1.75, 0.80),
    'cifar10_full': Targets({1: 2.7, 4: 1.8, 16: 1.6, 64: 1.55}, 1.55, 0.80),
    'alexnet': Targets({1: 2, 4: 1.2, 16: 1.1, 64: 1.05}, 1.0, 0.90),
    'speech': Targets({1: 3.5, 4: 2, 16: 1.5, 64: 1.15}, 1.0, 0.86),
    'resnet20': Targets({1: 1.8, 4: 1.8, 16: 1.8, 64: 1.8}, 2.2),
    'vggbn': Targets({1: 1.8, 4: 1.8, 16: 1.8, 64: 1.8}, 2.2),
    'mobilenet': Targets({1: 1.8, 4: 1.8, 16: 1.8, 64: 1.8}, 2.2),
}
SCALING = 1.9  # of two threads over one
APART = 0.95  # of two threads over two processes: the same where these are twice one
SINGLE = 1.5  # of a picture at a time, to PyTorch's fused graph
TEAM = 1.7    # of two threads that share a picture, to one
CUT = 1.7     # of two partitions of a model, with a thread each, to one thread
PREDICTION = {net: Targets({1: 1.3}, 1.3) for net in TRAINING}
