# fish completion for adam-worker, printed by adam-worker --completion fish
function __adam_worker_value
    commandline -ct | string replace -r '^--[a-z-]+=' '' | string replace -r '^["\']' ''
end
function __adam_worker_layer_keys
    set -l layer (__adam_worker_value | string match -r '^[^.=]*\.')
    if test -n "$layer"
        printf "$layer%s=\n" $argv
        return
    end
    for word in (commandline -o)
        if string match -q '*.net' -- $word; and test -f $word
            printf '%s.\n' (awk '$1 ~ /^[a-z]/ { n = ++count[$1]; print $2 ~ /^[A-Za-z][A-Za-z0-9_-]*$/ ? $2 : $1 (n > 1 || $1 != "input" ? n : "") }' $word 2>/dev/null)
        end
    end
end
function __adam_worker_operations
    set -l before (__adam_worker_value | string match -r '^.*; *')
    printf '%s\n' "$before"$argv
end
complete -c adam-worker -f
complete -c adam-worker -s m -l model -r -F -d 'model file, see adam-model(5)'
complete -c adam-worker -l set -x -a '(__adam_worker_layer_keys shape ops maps kernel stride pad dilation round groups act slope dropout size alpha beta k momentum epsilon units smoothing class-weights loss delta from cut init bias rate decay)' -d 'override a key of a layer, or of all that a pattern matches'
complete -c adam-worker -l freeze -x -d 'layers whose weights stay as they are: --set PATTERN.rate=0'
complete -c adam-worker -l init-from -x -d 'begin with the weights of its layers of the same names and shapes'
complete -c adam-worker -l class-weights -r -F -d 'how much classes count: auto, all together alike; or FILE of CLASS TAB WEIGHT'
complete -c adam-worker -s d -l data -r -F -d 'training set; - is standard input'
complete -c adam-worker -l labels -r -F -d 'labels of an IDX or npy training set'
complete -c adam-worker -l targets -r -F -d 'what samples have in the place of labels: classes of each, or numbers'
complete -c adam-worker -l test -r -F -d 'test set; auto=0.1 holds out a tenth of each class of the training set'
complete -c adam-worker -l test-labels -r -F -d 'labels of an IDX or npy test set'
complete -c adam-worker -l test-targets -r -F -d 'the same of the test set'
complete -c adam-worker -l from -x -d 'kind of the training set'
complete -c adam-worker -l spool -r -F -d 'copy standard input to FILE first, and train on that'
complete -c adam-worker -l ops -x -a '(__adam_worker_operations resize crop pad translate hflip vflip rotate affine shear perspective elastic brightness contrast saturation hue noise blur sharpness cutout erase gray invert posterize solarize autocontrast equalize randaugment scale mean std)' -d 'augment each picture in each epoch, see adam-ops(7)'
complete -c adam-worker -l mixup -x -d 'mix pairs of samples by shares of Beta(ALPHA, ALPHA), and their labels'
complete -c adam-worker -l cutmix -x -d 'the same by rectangles that pairs exchange'
complete -c adam-worker -s e -l epochs -x -d 'passes over the data'
complete -c adam-worker -s b -l batch -x -d 'samples of a mini-batch'
complete -c adam-worker -s t -l threads -x -d 'training threads'
complete -c adam-worker -l sync -d 'all threads share one mini-batch; the result does not depend on their number'
complete -c adam-worker -l home -x -a 'shared copies joined' -d 'weights of threads: shared, copies that are merged, or joined passes'
complete -c adam-worker -l partitions -x -d 'cut the model into N partitions, each with a thread that trains its part'
complete -c adam-worker -l in-flight -x -d 'mini-batches that partitions train at a time; with --sync parts of one'
complete -c adam-worker -l optimizer -x -a 'sgd momentum adagrad nesterov rmsprop adam adamw' -d 'update rule; momentum when --momentum is given'
complete -c adam-worker -s r -l rate -x -d 'learning rate'
complete -c adam-worker -l schedule -x -d 'constant, step:F@E,..., step:F/E, exp:F or cosine[:X]'
complete -c adam-worker -l warmup -x -d 'epochs in which the rate grows linearly from 0'
complete -c adam-worker -l momentum -x -d 'momentum coefficient; of adam and adamw beta1'
complete -c adam-worker -l beta2 -x -d 'rmsprop, adam, adamw: decay rate of the mean of squared gradients'
complete -c adam-worker -l decay -x -d 'weight decay of layers that set none'
complete -c adam-worker -l epsilon -x -d 'adagrad, rmsprop, adam, adamw: constant added to the square root'
complete -c adam-worker -l ema -x -d 'decay rate of a moving average of the weights, which is tested and saved'
complete -c adam-worker -l clip -x -d 'largest norm of a layer'\''s gradient'
complete -c adam-worker -s s -l seed -x -d 'seed for initial weights, sample order, augmentation and dropout'
complete -c adam-worker -l loaders -x -d 'threads that decode and augment'
complete -c adam-worker -l frozen-memory -x -d 'keep what frozen layers give from epoch to epoch'
complete -c adam-worker -s c -l controller -x -d 'the controller'\''s address, or @FILE with it'
complete -c adam-worker -l name -x -d 'name of this process, for people'
complete -c adam-worker -l keys -r -F -d 'TLS: a NAME.pem of adam-ctl keys, ca.crt beside it'
complete -c adam-worker -l insecure -d 'allow connections beyond this machine without TLS'
complete -c adam-worker -l listen -d 'where other workers reach it, in a run that cuts its model'
complete -c adam-worker -s o -l out -x -a '(__fish_complete_directories)' -d 'run folder: checkpoints and metrics'
complete -c adam-worker -l resume -x -a '(__fish_complete_directories)' -d 'go on with the run in DIR'
complete -c adam-worker -s f -l force -d 'replace a run, or a spool file, that exists'
complete -c adam-worker -l eval-every -x -d 'between two tests, such as 0.125; 0: one at the end'
complete -c adam-worker -l checkpoint-every -x -d 'epochs, or minutes (15m), between checkpoints; 0: only at the end'
complete -c adam-worker -l keep-last -x -d 'checkpoints to keep; 0: all'
complete -c adam-worker -l patience -x -d 'end when N tests have not been better than the best one'
complete -c adam-worker -l metrics-every -x -d 'seconds between lines of metrics.jsonl'
complete -c adam-worker -s q -l quiet -d 'say nothing but errors'
complete -c adam-worker -s h -l help -d 'print this text'
complete -c adam-worker -s V -l version -d 'print the version and the processor features in use'
complete -c adam-worker -l completion -x -a 'bash zsh fish' -d 'print the completion script for a shell'
